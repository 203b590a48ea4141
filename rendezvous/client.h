// A Link to a service elsewhere: gRPC over a Unix socket or TCP, asynchronous, on the agent's loop.
//
// Owns the channel, the open calls and the words for every way of not reaching a service. Refuses
// to know what requests mean. Deadlines on all calls; no retries: whoever calls decides when to
// call again. While it lives it keeps the loop's run() busy.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/credentials.h"
#include "rendezvous/endpoint.h"
#include "rendezvous/link.h"

namespace boost::asio {
class io_context;
}

namespace lrun::rendezvous {

class Client final : public Link {
 public:
  struct Options {
    // At least one. A call that does not reach the first goes to the next; one that has answered
    // stays first.
    std::vector<Endpoint> endpoints;
    // Sent with every call; a service of another run refuses with WrongRun. Empty (people's calls
    // only): whichever run is served there.
    std::string run_id;
    // Loopback and Unix sockets are dialled in plain text, with TLS as a second try where these
    // are given; everything else needs them or insecure_network.
    std::optional<Credentials> credentials;
    bool insecure_network = false;
    // For calls that are answered at once; held ones get `hold` on top.
    Duration call_limit = std::chrono::seconds(5);
    Duration hold = std::chrono::seconds(20);  // not below the service's Config::hold
  };
  Client(boost::asio::io_context& loop, Options options);
  ~Client() override;

  // NodeFacts::address may be left empty: it becomes local_address(), or the address that the
  // service sees.
  void join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) override;
  void watch(const WatchRequest& request, OnAnswer<WatchReply> on_answer) override;
  void heartbeat(const HeartbeatRequest& request, OnAnswer<HeartbeatAnswer> on_answer) override;
  void leave(const LeaveRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) override;
  void publish(const PublishRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) override;
  void lookup(const LookupRequest& request, OnAnswer<LookupReply> on_answer) override;
  // This machine's end of the way to the service: known at once for numeric endpoints, after the
  // first answer for names; "127.0.0.1" for Unix sockets.
  std::string local_address() const override;

  // For people.
  using StatusAnswer = std::variant<Status, Refusal>;
  void get_status(OnAnswer<StatusAnswer> on_answer);
  void drain(const NodeId& node, OnAnswer<AcknowledgeAnswer> on_answer);
  void stop(const std::string& reason, OnAnswer<AcknowledgeAnswer> on_answer);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The same, waiting: each runs a loop of its own for at most the options' call_limit.
Answer<Client::StatusAnswer> get_status_now(Client::Options options);
Answer<AcknowledgeAnswer> drain_now(Client::Options options, const NodeId& node);
Answer<AcknowledgeAnswer> stop_now(Client::Options options, const std::string& reason);

// The address of the interface by which packets to `address` (numeric) leave; empty when there is
// no way. No packet is sent.
std::string local_address_towards(const std::string& address);

}  // namespace lrun::rendezvous
