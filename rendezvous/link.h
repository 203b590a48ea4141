// How an agent reaches its rendezvous: one call per RPC, answers on the agent's loop.
//
// Two implementations: rendezvous/client (gRPC, over a Unix socket or TCP) and
// rendezvous/local_link (the service lives on the same loop, no socket). Every callback is run
// exactly once, from the loop, never from inside the call; destroying the link drops pending ones.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

// The call did not reach a service that answered. The agent repeats it with back-off and jitter.
struct Unreachable {
  // True when the host answered in some way (refused, reset, handshake): it is alive, so nobody
  // fences (architecture.md §4). False for silence.
  bool host_answered = false;
  // One line: address, class of the error, and the ways out where the user must act (foreign
  // certificate, plain text against TLS).
  std::string sentence;
  // The two sides can never talk as configured (credentials, version): do not repeat.
  bool is_final = false;
};

template <class Reply>
using Answer = std::variant<Reply, Unreachable>;
template <class Reply>
using OnAnswer = std::function<void(Answer<Reply>)>;

using HeartbeatAnswer = std::variant<HeartbeatReply, Refusal>;
// Success or why not.
using AcknowledgeAnswer = std::variant<std::monostate, Refusal>;

class Link {
 public:
  virtual ~Link() = default;
  virtual void join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) = 0;
  virtual void watch(const WatchRequest& request, OnAnswer<WatchReply> on_answer) = 0;
  virtual void heartbeat(const HeartbeatRequest& request, OnAnswer<HeartbeatAnswer> on_answer) = 0;
  virtual void leave(const LeaveRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) = 0;
  virtual void publish(const PublishRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) = 0;
  virtual void lookup(const LookupRequest& request, OnAnswer<LookupReply> on_answer) = 0;
  // The address of this machine's end of the connection to the service, "127.0.0.1" for local
  // ones; empty before the first answer. What the node advertises when nothing else is told.
  virtual std::string local_address() const = 0;
};

}  // namespace lrun::rendezvous
