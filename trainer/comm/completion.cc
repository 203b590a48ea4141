#include "trainer/comm/completion.h"

#include <utility>

#include "trainer/comm/comm.h"

namespace lrun::comm {

void Completion::succeed() { end(std::nullopt); }

void Completion::fail(const Failure& failure) { end(failure); }

void Completion::end(std::optional<Failure> failure) {
  // Notified under the lock: the waiter may destroy this object as soon as it can take it.
  const std::lock_guard lock(mutex_);
  is_done_ = true;
  failure_ = std::move(failure);
  ended_.notify_all();
}

void Completion::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return is_done_; });
  if (failure_) throw_as_exception(*failure_);
}

Handle::Handle(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}
Handle::Handle(Handle&&) noexcept = default;

Handle& Handle::operator=(Handle&& other) noexcept {
  Handle old(std::move(*this));
  completion_ = std::move(other.completion_);
  return *this;
}

Handle::~Handle() {
  try {
    wait();
  } catch (...) {  // nobody asked for it: the Comm is dead and every later operation says why
  }
}

void Handle::wait() {
  if (completion_) std::exchange(completion_, nullptr)->wait();
}

}  // namespace lrun::comm
