// A Link to a Service on the same loop: no socket, so that a local launch costs milliseconds.
//
// Owns the tickets of its open calls; ends them when it dies, which is to the service what a closed
// connection is. Callbacks are posted. The service must outlive the link.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/link.h"

namespace lrun::rendezvous {

class Service;

class LocalLink final : public Link {
 public:
  explicit LocalLink(Service& service);
  ~LocalLink() override;

  void join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) override;
  void watch(const WatchRequest& request, OnAnswer<WatchReply> on_answer) override;
  void heartbeat(const HeartbeatRequest& request, OnAnswer<HeartbeatAnswer> on_answer) override;
  void leave(const LeaveRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) override;
  void publish(const PublishRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) override;
  void lookup(const LookupRequest& request, OnAnswer<LookupReply> on_answer) override;
  std::string local_address() const override;  // "127.0.0.1"

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::rendezvous
