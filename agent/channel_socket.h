// The agent's end of one worker's channel, on the loop.
//
// Owns the socket, the reader of lines and a bounded queue of what the worker has not read yet.
// A worker that breaks the grammar is cut off, never trusted again and never able to hurt the
// agent. Refuses to know what messages mean. Called by agent/workers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "proto/channel.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

class DescriptorWatch;

// Assignments, aborts and values of a blackboard for one worker; more means that it does not read.
inline constexpr std::size_t kChannelQueueBytesMax = 1024 * 1024;

class ChannelSocket {
 public:
  struct Callbacks {
    std::function<void(channel::FromWorker)> on_message;
    // Once; the channel is closed.
    std::function<void(std::string reason)> on_garbled;
  };
  ChannelSocket(boost::asio::io_context& loop, Fd agents_end, Callbacks callbacks);
  ~ChannelSocket();

  // Begins to listen: not before the worker's start has been told, so that the order is right.
  void start();
  // Dropped when the channel is closed.
  void send(const channel::ToWorker& message);
  // The worker is gone: passes on what it said last.
  void drain();
  bool is_open() const { return watch_ != nullptr; }

 private:
  // False: there is nothing more now, or this has been destroyed.
  bool read();
  // False: the callback may have destroyed this.
  bool take(const std::string& line);
  void write();
  void garbled(std::string reason);

  Callbacks callbacks_;
  std::unique_ptr<DescriptorWatch> watch_;
  channel::LineReader reader_;
  bool has_said_hello_ = false;
  std::string queue_;
  bool is_waiting_ = false;
  // Dies with this: tells a callback's caller.
  std::shared_ptr<bool> life_ = std::make_shared<bool>(true);
};

// A connected pair: the first end for the agent (not blocking), the second for the worker. Throws
// std::system_error.
struct ChannelPair {
  Fd agents_end;
  Fd workers_end;
};
ChannelPair make_channel();

}  // namespace lrun::agent
