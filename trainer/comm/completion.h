// The meeting point of the thread that waits for an operation and the thread that carries it out.
//
// Owned jointly by a Handle and the communication thread. Any thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

namespace lrun::comm {

class Completion {
 public:
  void succeed();
  void fail(std::exception_ptr error);
  // Returns or throws what the operation ended with. Bounded: each operation has a deadline.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;
  std::exception_ptr error_;
};

}  // namespace lrun::comm
