// The meeting point of the thread that waits for an operation and the thread that carries it out.
//
// Owned jointly by a Handle and the communication thread. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "trainer/comm/failure.h"

namespace lrun::comm {

class Completion {
 public:
  void succeed();
  void fail(const Failure& failure);
  // Returns, or throws what the operation ended with, as an exception of the waiting thread's own.
  // Bounded: each operation has a deadline.
  void wait();

 private:
  void end(std::optional<Failure> failure);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  std::optional<Failure> failure_;
};

}  // namespace lrun::comm
