#include "trainer/comm/channel_bootstrap.h"

#include <stdexcept>

namespace lrun::comm {

void ChannelBootstrap::publish(const std::string& key, const std::string& value) {
  if (!channel_.is_open()) throw std::runtime_error("the channel to the agent has closed");
  if (const auto abort = channel_.abort_request()) {
    throw std::runtime_error("the generation has ended: " + abort->reason);
  }
  channel_.send(channel::PublishValue{key, value});
}

std::string ChannelBootstrap::lookup(const std::string& key, std::chrono::milliseconds deadline) {
  return channel_.lookup(key, deadline);
}

}  // namespace lrun::comm
