// What will happen when: the simulation's clock and queue.
//
// Owns virtual time. What is due at one instant happens in the order in which it was entered.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "proto/ids.h"

namespace lrun::sim {

class Agenda {
 public:
  Instant now() const { return now_; }
  void after(Duration delay, std::function<void()> deed);
  std::optional<Instant> next() const;
  // Time never goes back, and never jumps over an entry.
  void go_to(Instant time);
  // Takes the first entry that is due; false when none is.
  bool run_one();

 private:
  struct Entry {
    Instant due;
    std::uint64_t order = 0;
    std::function<void()> deed;
  };
  static bool is_later(const Entry& one, const Entry& other);

  Instant now_{};
  std::uint64_t entered_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace lrun::sim
