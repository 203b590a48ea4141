#include "rendezvous/client.h"

#include <arpa/inet.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <map>
#include <utility>

#include "base/fd.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/convert.h"
#include "rendezvous/mailbox.h"
#include "rendezvous/probe.h"
#include "rendezvous/transport.h"
#include "rendezvous/unreachable.h"
#include "rendezvous/wire_limits.h"

namespace lrun::rendezvous {
namespace {

using AsyncStub = v1::Rendezvous::StubInterface::async_interface;

// gRPC connects anew by itself for as long as a channel lives; ours live as long as they work, so
// these only bound what happens between.
constexpr int kReconnectMaxMs = 1'000;

// gRPC ends cancelled calls within milliseconds; a machine under load may take longer.
constexpr Duration kEndLimit = std::chrono::seconds(10);

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  const auto set = [&](const char* name, std::int64_t value) {
    arguments.SetInt(name, static_cast<int>(value));
  };
  set(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  set(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  set(GRPC_ARG_ENABLE_RETRIES, 0);
  // One connection per client: it closes with its owner, and that is what the service watches.
  set(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTime.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveLimit.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectLimit.count());
  set(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  set(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  set(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  arguments.SetMaxReceiveMessageSize(kReplyBytesMax);
  return arguments;
}

bool is_numeric(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

// The last "ipv4:1.2.3.4:5" or "ipv6:%5B::1%5D:5" in a text of gRPC; empty without one.
std::string numeric_address_in(std::string text) {
  for (const auto& [escaped, bracket] : {std::pair{"%5B", '['}, std::pair{"%5D", ']'}}) {
    for (std::size_t at = 0; (at = text.find(escaped)) != std::string::npos;) {
      text.replace(at, 3, 1, bracket);
    }
  }
  const std::size_t v4 = text.rfind("ipv4:");
  const std::size_t v6 = text.rfind("ipv6:[");
  const bool is_v6 = v6 != std::string::npos && (v4 == std::string::npos || v6 > v4);
  const std::size_t start = is_v6 ? v6 + 6 : v4 + 5;
  if (!is_v6 && v4 == std::string::npos) return {};
  return text.substr(start, text.find(is_v6 ? ']' : ':', start) - start);
}

// One way to the service: an endpoint and, while it works, a channel to it.
struct Way {
  Endpoint endpoint;
  bool uses_tls = false;
  std::string address = {};    // numeric, once known
  bool was_connected = false;  // it has answered since the last failure
  std::shared_ptr<grpc::Channel> channel = {};
  std::unique_ptr<v1::Rendezvous::Stub> stub = {};
};

// What lives from a call's start to its end. The loop owns it: were the last reference to a channel
// dropped on a gRPC thread, that thread would wait for its own end.
template <class WireRequest, class WireReply>
struct Exchange {
  grpc::ClientContext call;
  WireRequest request;
  WireReply reply;
};

template <class WireRequest, class WireReply>
using Method = void (AsyncStub::*)(grpc::ClientContext*, const WireRequest*, WireReply*,
                                   std::function<void(grpc::Status)>);

bool is_not_reached(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

struct Client::Impl : std::enable_shared_from_this<Client::Impl> {
  Impl(boost::asio::io_context& loop_of_agent, Options options_given)
      : loop(loop_of_agent), options(std::move(options_given)), mailbox(Mailbox::open(loop)) {
    assert(!options.endpoints.empty());
    for (const Endpoint& endpoint : options.endpoints) {
      Way way{.endpoint = endpoint};
      way.uses_tls = !is_loopback(endpoint) && !options.insecure_network;
      if (is_numeric(endpoint.host)) way.address = endpoint.host;
      if (!is_loopback(endpoint) && !way.uses_tls) warn_of_plain_text(to_string(endpoint));
      ways.push_back(std::move(way));
    }
  }

  // --- one call
  // ------------------------------------------------------------------------------------

  template <class WireRequest, class WireReply, class Reply>
  void call(Method<WireRequest, WireReply> method, WireRequest request, Duration limit,
            OnAnswer<Reply> on_answer) {
    using Pair = Exchange<WireRequest, WireReply>;
    const auto exchange = std::make_shared<Pair>();
    exchange->request = std::move(request);
    exchange->call.set_deadline(std::chrono::system_clock::now() +
                                std::chrono::duration_cast<std::chrono::microseconds>(limit));
    const std::size_t way = current_way;
    if (!connect(ways[way])) return answer_soon<Reply>(no_keys(ways[way]), std::move(on_answer));
    const std::uint64_t number = ++last_number;
    open_calls[number] = {
        std::shared_ptr<grpc::ClientContext>(exchange, &exchange->call),
        // What the caller gave stays on this thread: gRPC's may outlive the client.
        [this, way, exchange, on_answer = std::move(on_answer)](const grpc::Status& status) {
          end<Reply>(way, exchange->call, exchange->reply, status, on_answer);
        }};
    (ways[way].stub->async()->*method)(
        &exchange->call, &exchange->request, &exchange->reply,
        [number, mailbox = mailbox, weak = weak_from_this()](grpc::Status status) {
          mailbox->leave([number, weak, status = std::move(status)] {
            const auto self = weak.lock();
            if (self) self->take_status(number, status);
          });
        });
  }

  void take_status(std::uint64_t number, const grpc::Status& status) {
    const auto open = open_calls.extract(number);
    if (!open.empty() && !is_closed) open.mapped().on_status(status);
  }

  template <class Reply, class WireReply>
  void end(std::size_t way_index, const grpc::ClientContext& call, const WireReply& wire,
           const grpc::Status& status, const OnAnswer<Reply>& on_answer) {
    Way& way = ways[way_index];
    if (status.ok()) {
      note_answer(way, call.peer());
      return on_answer(Answer<Reply>(std::in_place_index<0>, read(wire)));
    }
    const auto refusal = to_refusal(
        {static_cast<int>(status.error_code()), status.error_message(), status.error_details()});
    if (refusal) {
      note_answer(way, call.peer());
      return on_answer(Answer<Reply>(std::in_place_index<0>, *refusal));
    }
    if (!is_not_reached(status)) {
      const bool is_final = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
      return on_answer(explain_status(way.endpoint, code_name(status.error_code()),
                                      status.error_message(), is_final));
    }
    find_out(way_index, call.peer(), status, [on_answer](Unreachable why) { on_answer(why); });
  }

  template <class Reply>
  void answer_soon(Unreachable why, OnAnswer<Reply> on_answer) {
    boost::asio::post(loop, [weak = weak_from_this(), why, on_answer = std::move(on_answer)] {
      if (weak.lock()) on_answer(why);
    });
  }

  // --- ways
  // ----------------------------------------------------------------------------------------

  // False when the way needs keys and there are none.
  bool connect(Way& way) {
    if (way.channel) return true;
    if (way.uses_tls && !options.credentials) return false;
    start_grpc();
    if (way.uses_tls && !tls) tls = channel_credentials(&*options.credentials);
    way.channel = grpc::CreateCustomChannel(to_string(way.endpoint),
                                            way.uses_tls ? tls : channel_credentials(nullptr),
                                            channel_arguments());
    way.stub = v1::Rendezvous::NewStub(way.channel);
    return true;
  }

  Unreachable no_keys(const Way& way) const {
    return {.host_answered = true,
            .sentence = to_string(way.endpoint) +
                        " is beyond this machine and speaks TLS: give its keys with --tls DIR, or "
                        "--insecure-network on all nodes for plain text",
            .is_final = true};
  }

  void note_answer(Way& way, const std::string& peer) {
    way.was_connected = true;
    if (const std::string address = numeric_address_in(peer); !address.empty()) {
      way.address = address;
    }
  }

  // The caller's next attempt connects anew, at once: its back-off is the only one. Calls that are
  // still open keep the old channel until they end.
  void give_up(std::size_t way_index) {
    Way& way = ways[way_index];
    way.stub.reset();
    way.channel.reset();
    way.was_connected = false;
    if (way_index == current_way) current_way = (current_way + 1) % ways.size();
  }

  // Calls `tell` with what is wrong with a way that failed.
  void find_out(std::size_t way_index, const std::string& peer, const grpc::Status& status,
                std::function<void(Unreachable)> tell) {
    Way& way = ways[way_index];
    for (const std::string& text : {peer, status.error_message()}) {
      const std::string address = numeric_address_in(text);
      if (!address.empty() && !is_numeric(way.endpoint.host)) way.address = address;
    }
    Attempt attempt{.endpoint = way.endpoint,
                    .uses_tls = way.uses_tls,
                    .tls_folder = options.credentials ? options.credentials->folder : "",
                    .is_out_of_time = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED};
    ProbeTarget target{.endpoint = way.endpoint,
                       .looks_at_protocol = !way.was_connected,
                       .credentials = options.credentials};
    // A connection that stands is kept: its held calls would else look like a dead agent's.
    if (!attempt.is_out_of_time || !way.was_connected) give_up(way_index);
    if (way.endpoint.unix_path.empty() && way.address.empty()) {
      return tell(explain_unknown_name(way.endpoint));
    }
    if (!way.address.empty()) target.endpoint.host = way.address;
    probe(loop, std::move(target),
          [weak = weak_from_this(), way_index, attempt = std::move(attempt),
           tell = std::move(tell)](const ProbeResult& found) mutable {
            const auto self = weak.lock();
            if (!self) return;
            attempt.uses_tls = self->learn_tls(self->ways[way_index], found) || attempt.uses_tls;
            tell(explain(attempt, found));
          });
  }

  // A service on all addresses speaks TLS on loopback as well: with keys, the next attempt does so
  // too. True when it will.
  bool learn_tls(Way& way, const ProbeResult& found) {
    const bool speaks_tls = found.finding == Finding::TrustedTls ||
                            found.finding == Finding::ForeignTls ||
                            found.finding == Finding::RefusesOurKeys;
    if (!speaks_tls || !is_loopback(way.endpoint) || !options.credentials) return false;
    way.uses_tls = true;
    return true;
  }

  void close() {
    is_closed = true;
    for (const auto& [number, open] : open_calls) open.call->TryCancel();
    mailbox->work_until([this] { return open_calls.empty(); }, kEndLimit);
    mailbox->close();
    assert(open_calls.empty() && "gRPC ends a cancelled call at once");
    ways.clear();
  }

  struct OpenCall {
    std::shared_ptr<grpc::ClientContext> call;
    std::function<void(const grpc::Status&)> on_status;
  };

  boost::asio::io_context& loop;
  const Options options;
  const std::shared_ptr<Mailbox> mailbox;
  std::shared_ptr<grpc::ChannelCredentials> tls;
  std::vector<Way> ways;
  std::size_t current_way = 0;
  std::map<std::uint64_t, OpenCall> open_calls;
  std::uint64_t last_number = 0;
  bool is_closed = false;
};

Client::Client(boost::asio::io_context& loop, Options options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}

Client::~Client() { impl_->close(); }

namespace {

template <class WireRequest, class Request>
WireRequest to_wire(const Request& request) {
  WireRequest wire;
  write(request, wire);
  return wire;
}

}  // namespace

void Client::join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) {
  auto wire = to_wire<v1::JoinRequest>(request);
  if (request.facts.address.empty()) wire.mutable_facts()->set_address(local_address());
  impl_->call<v1::JoinRequest, v1::JoinReply>(
      &AsyncStub::Join, std::move(wire), impl_->options.hold + kHoldMargin, std::move(on_answer));
}

void Client::watch(const WatchRequest& request, OnAnswer<WatchReply> on_answer) {
  impl_->call<v1::WatchRequest, v1::WatchReply>(
      &AsyncStub::Watch, to_wire<v1::WatchRequest>(request), impl_->options.hold + kHoldMargin,
      std::move(on_answer));
}

void Client::heartbeat(const HeartbeatRequest& request, OnAnswer<HeartbeatAnswer> on_answer) {
  auto wire = to_wire<v1::HeartbeatRequest>(request);
  if (request.facts.address.empty()) wire.mutable_facts()->set_address(local_address());
  impl_->call<v1::HeartbeatRequest, v1::HeartbeatReply>(
      &AsyncStub::Heartbeat, std::move(wire), impl_->options.call_limit, std::move(on_answer));
}

void Client::leave(const LeaveRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) {
  impl_->call<v1::LeaveRequest, v1::Acknowledgement>(
      &AsyncStub::Leave, to_wire<v1::LeaveRequest>(request), impl_->options.call_limit,
      std::move(on_answer));
}

void Client::publish(const PublishRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) {
  auto wire = to_wire<v1::PublishRequest>(request);
  write_caller(impl_->options.run_id, *wire.mutable_caller());
  impl_->call<v1::PublishRequest, v1::Acknowledgement>(
      &AsyncStub::Publish, std::move(wire), impl_->options.call_limit, std::move(on_answer));
}

void Client::lookup(const LookupRequest& request, OnAnswer<LookupReply> on_answer) {
  auto wire = to_wire<v1::LookupRequest>(request);
  write_caller(impl_->options.run_id, *wire.mutable_caller());
  impl_->call<v1::LookupRequest, v1::LookupReply>(
      &AsyncStub::Lookup, std::move(wire), impl_->options.hold + kHoldMargin, std::move(on_answer));
}

void Client::get_status(OnAnswer<StatusAnswer> on_answer) {
  v1::GetStatusRequest wire;
  write_caller(impl_->options.run_id, *wire.mutable_caller());
  impl_->call<v1::GetStatusRequest, v1::GetStatusReply>(
      &AsyncStub::GetStatus, std::move(wire), impl_->options.call_limit, std::move(on_answer));
}

void Client::drain(const NodeId& node, OnAnswer<AcknowledgeAnswer> on_answer) {
  v1::DrainRequest wire;
  write_caller(impl_->options.run_id, *wire.mutable_caller());
  wire.set_node(node.value);
  impl_->call<v1::DrainRequest, v1::Acknowledgement>(
      &AsyncStub::Drain, std::move(wire), impl_->options.call_limit, std::move(on_answer));
}

void Client::stop(const std::string& reason, OnAnswer<AcknowledgeAnswer> on_answer) {
  v1::StopRequest wire;
  write_caller(impl_->options.run_id, *wire.mutable_caller());
  wire.set_reason(reason);
  impl_->call<v1::StopRequest, v1::Acknowledgement>(
      &AsyncStub::Stop, std::move(wire), impl_->options.call_limit, std::move(on_answer));
}

std::string Client::local_address() const {
  const Way& way = impl_->ways[impl_->current_way];
  if (!way.endpoint.unix_path.empty()) return "127.0.0.1";
  return way.address.empty() ? std::string() : local_address_towards(way.address);
}

}  // namespace lrun::rendezvous
