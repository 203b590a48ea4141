// Where ranks leave small values for each other before they are connected.
//
// Values belong to one generation. Implementations: ChannelBootstrap (the agent's blackboard) and
// MemoryBootstrap (ranks that are threads of one process). Called by the set-up of a Comm, on the
// thread that connects.
#pragma once

#include <chrono>
#include <string>

namespace lrun::comm {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // `value` at most 4 KiB. Throws std::runtime_error when the generation has ended.
  virtual void publish(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has published `key`. Throws DeadlineExceeded.
  virtual std::string lookup(const std::string& key, std::chrono::milliseconds deadline) = 0;
};

}  // namespace lrun::comm
