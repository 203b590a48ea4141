// The shell around the rendezvous state machine: one Asio loop, one timer, tickets to callbacks.
//
// Owns the machine and the pending answers. Every call and every answer happens on the loop's
// thread. gRPC enters through rendezvous/server, the local agent through rendezvous/local_link.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/events.h"
#include "rendezvous/link.h"

namespace boost::asio {
class io_context;
}

namespace lrun::rendezvous {

class Metrics;

class Service {
 public:
  struct Options {
    Config config;
    std::uint64_t term = 1;
    Metrics* metrics = nullptr;  // must outlive the service; null: none
  };
  // `on_closed` runs once, from the loop, when the job is over.
  Service(boost::asio::io_context& loop, Options options, std::function<void(JobClosed)> on_closed);
  ~Service();

  // Each returns the ticket, so that a front end can say that its client went away. `on_reply` runs
  // once, from the loop, never inside the call.
  Ticket join(JoinRequest request, std::function<void(JoinReply)> on_reply);
  Ticket watch(WatchRequest request, std::function<void(WatchReply)> on_reply);
  Ticket heartbeat(HeartbeatRequest request, std::function<void(HeartbeatAnswer)> on_reply);
  Ticket leave(LeaveRequest request, std::function<void(AcknowledgeAnswer)> on_reply);
  Ticket publish(PublishRequest request, std::function<void(AcknowledgeAnswer)> on_reply);
  Ticket lookup(LookupRequest request, std::function<void(LookupReply)> on_reply);
  Ticket drain(NodeId node, std::function<void(AcknowledgeAnswer)> on_reply);
  Ticket stop(std::string reason, std::function<void(AcknowledgeAnswer)> on_reply);
  // The client of a held call went away: its callback is dropped.
  void end_call(Ticket ticket);

  Status status() const;
  const std::string& run_id() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::rendezvous
