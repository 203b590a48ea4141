// Samples per second of the whole job, over a short window.
//
// Pure: time is passed in.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/ids.h"

namespace lrun::loop {

class Throughput {
 public:
  void add(Instant now, std::int64_t samples_in_all);
  // 0 until two steps have been seen.
  double samples_per_second() const;

 private:
  struct Mark {
    Instant at;
    std::int64_t samples = 0;
  };
  std::deque<Mark> marks_;
};

}  // namespace lrun::loop
