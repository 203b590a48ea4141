// How long to wait before asking the rendezvous again.
//
// Owns the growth and the jitter; refuses to know clocks and calls. Used by the supervisor between
// refused joins, by the shell between calls that failed, and by the simulator in the shell's place.
#pragma once

#include <cstdint>

#include "proto/ids.h"

namespace lrun::agent {

class RetryBackoff {
 public:
  struct Limits {
    Duration first = std::chrono::milliseconds(50);
    // Well under any lease, so that a service that comes back hears everybody within one.
    Duration longest = std::chrono::seconds(1);
  };

  // Equal seeds give equal waits; a seed per agent keeps a thousand of them apart.
  RetryBackoff(std::uint64_t seed, Limits limits);

  // The next wait: doubles from `first` to `longest`, of which up to the half is taken off at
  // random.
  Duration next();
  // The call went well: begin small again.
  void reset() { current_ = limits_.first; }

 private:
  Limits limits_;
  Duration current_;
  std::uint64_t random_;
};

}  // namespace lrun::agent
