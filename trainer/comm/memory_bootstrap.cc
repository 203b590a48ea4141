#include "trainer/comm/memory_bootstrap.h"

#include "trainer/comm/errors.h"

namespace lrun::comm {

void MemoryBootstrap::publish(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  published_.notify_all();
}

std::string MemoryBootstrap::lookup(const std::string& key, std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  if (!published_.wait_for(lock, deadline, [&] { return values_.count(key) > 0; })) {
    throw DeadlineExceeded("nobody has published '" + key + "' within " +
                           std::to_string(deadline.count()) + " ms");
  }
  return values_.at(key);
}

}  // namespace lrun::comm
