// The agent's blackboard as a Bootstrap: the agent scopes values to the worker's generation.
#pragma once

#include "trainer/comm/bootstrap.h"
#include "trainer/comm/worker_channel.h"

namespace lrun::comm {

class ChannelBootstrap final : public Bootstrap {
 public:
  // `channel` outlives the bootstrap.
  explicit ChannelBootstrap(WorkerChannel& channel) : channel_(channel) {}

  void publish(const std::string& key, const std::string& value) override;
  std::string lookup(const std::string& key, std::chrono::milliseconds deadline) override;

 private:
  WorkerChannel& channel_;
};

}  // namespace lrun::comm
