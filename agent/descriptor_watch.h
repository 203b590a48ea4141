// A descriptor on the loop: tells when it can be read or written.
//
// Owns the descriptor. Callbacks never run after the watch is destroyed, and may destroy it. Used
// by the agent's shells for pipes, channels, the console and the keeper.
#pragma once

#include <functional>
#include <memory>

#include "base/fd.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

class DescriptorWatch {
 public:
  // No callback yet. `descriptor` must be one that can be polled (no regular file).
  DescriptorWatch(boost::asio::io_context& loop, Fd descriptor);
  ~DescriptorWatch();
  DescriptorWatch(const DescriptorWatch&) = delete;
  DescriptorWatch& operator=(const DescriptorWatch&) = delete;

  int get() const;
  // Each time there is something to read, an end of file included, until the watch dies.
  void on_readable(std::function<void()> callback);
  // Once; a second call while one is pending replaces its callback.
  void once_writable(std::function<void()> callback);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lrun::agent
