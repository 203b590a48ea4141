// Values that ranks of one process (threads) leave for each other. For tests and benchmarks, and
// for programs that run a whole world in one process. Any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "trainer/comm/bootstrap.h"

namespace lrun::comm {

class MemoryBootstrap final : public Bootstrap {
 public:
  void publish(const std::string& key, const std::string& value) override;
  std::string lookup(const std::string& key, std::chrono::milliseconds deadline) override;

 private:
  std::mutex mutex_;
  std::condition_variable published_;
  std::map<std::string, std::string> values_;
};

}  // namespace lrun::comm
