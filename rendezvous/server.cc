#include "rendezvous/server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <utility>

#include "base/log.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/convert.h"
#include "rendezvous/listeners.h"
#include "rendezvous/mailbox.h"
#include "rendezvous/metrics.h"
#include "rendezvous/service.h"
#include "rendezvous/transport.h"
#include "rendezvous/wire_limits.h"

namespace lrun::rendezvous {
namespace {

// A connection that has not finished its handshake by then is closed: half-open ones cannot pile
// up.
constexpr int kHandshakeLimitMs = 10'000;

grpc::Status to_grpc(const Refusal& refusal) {
  const WireStatus status = to_status(refusal);
  return {static_cast<grpc::StatusCode>(status.code), status.sentence, status.details};
}

grpc::Status stopping() {
  return {grpc::StatusCode::UNAVAILABLE, "the rendezvous service is stopping"};
}

// "ipv4:10.0.0.3:4711" or "ipv6:%5B::1%5D:4711" to the address; Unix sockets are this machine.
std::string address_of_peer(const std::string& peer) {
  if (peer.starts_with("unix:")) return "127.0.0.1";
  const std::size_t first = peer.find(':');
  const std::size_t last = peer.rfind(':');
  if (first == std::string::npos || first == last) return {};
  std::string address = peer.substr(first + 1, last - first - 1);
  for (const std::string_view bracket : {"%5B", "%5D", "[", "]"}) {
    const std::size_t at = address.find(bracket);
    if (at != std::string::npos) address.erase(at, bracket.size());
  }
  return address;
}

// Waits on purpose, so its time says nothing about the service.
bool is_held(std::string_view method) {
  return method == "Join" || method == "Watch" || method == "Lookup";
}

class Doors;

// One call from its arrival to its Finish. Made by a gRPC thread, finished by the loop, deleted by
// gRPC. The loop knows it by number, since it may be gone by the time a cancellation is read.
class Call final : public grpc::ServerUnaryReactor {
 public:
  Call(std::shared_ptr<Doors> doors, std::string_view method);
  ~Call() override;
  void OnCancel() override;
  void OnDone() override { delete this; }

  const std::uint64_t number;
  const std::string_view method;
  const Instant arrived = std::chrono::steady_clock::now();

 private:
  std::shared_ptr<Doors> doors_;
};

// What the loop knows of open calls. Shared with gRPC's threads, which touch only the mailbox and
// the two counters.
class Doors : public std::enable_shared_from_this<Doors> {
 public:
  Doors(boost::asio::io_context& loop, Service& service, Metrics* metrics)
      : mailbox(Mailbox::open(loop)),
        run_id(service.run_id()),
        service_(service),
        metrics_(metrics) {}

  const std::shared_ptr<Mailbox> mailbox;
  const std::string run_id;
  std::atomic<std::uint64_t> last_number{0};
  std::atomic<int> open_calls{0};

  // --- all below: the loop's thread
  // ----------------------------------------------------------------

  // Opens a call of the service, whose answer is written to `wire`.
  template <class Reply, class Request, class WireReply>
  void begin(Call& call, Ticket (Service::*open)(Request, std::function<void(Reply)>),
             Request request, WireReply* wire) {
    if (is_stopping_) return finish(call, stopping());
    const auto on_reply = [weak = weak_from_this(), number = call.number, wire](Reply reply) {
      if (const auto self = weak.lock()) self->answer(number, std::move(reply), wire);
    };
    calls_.emplace(call.number, OpenCall{&call, (service_.*open)(std::move(request), on_reply)});
  }

  void tell_status(Call& call, v1::GetStatusReply* wire) {
    if (is_stopping_) return finish(call, stopping());
    write(service_.status(), *wire);
    finish(call, grpc::Status::OK);
  }

  void refuse(Call& call, const Refusal& refusal) {
    if (metrics_) metrics_->count(CallRefused{.node = {}, .refusal = refusal});
    // Outsiders may knock as often as they like: said when it changes.
    if (refusal != last_refusal_) {
      last_refusal_ = refusal;
      log::warn("call_refused", {{"method", call.method}, {"why", refusal.sentence}});
    }
    finish(call, to_grpc(refusal));
  }

  // The client went away, or gave up.
  void cancel(std::uint64_t number) {
    const auto found = calls_.extract(number);
    if (found.empty()) return;
    if (!is_stopping_) service_.end_call(found.mapped().ticket);
    finish(*found.mapped().call, grpc::Status::CANCELLED);
  }

  void stop() {
    is_stopping_ = true;
    mailbox->close();
    for (const auto& [number, open] : std::exchange(calls_, {})) {
      service_.end_call(open.ticket);
      finish(*open.call, stopping());
    }
  }

 private:
  struct OpenCall {
    Call* call;
    Ticket ticket;
  };

  template <class Reply, class WireReply>
  void answer(std::uint64_t number, Reply reply, WireReply* wire) {
    const auto found = calls_.extract(number);
    if (found.empty()) return;
    Call& call = *found.mapped().call;
    if (const auto* refusal = std::get_if<Refusal>(&reply)) return finish(call, to_grpc(*refusal));
    if constexpr (std::is_same_v<Reply, HeartbeatAnswer>) {
      write(std::get<HeartbeatReply>(reply), *wire);
    } else if constexpr (!std::is_same_v<Reply, AcknowledgeAnswer>) {
      write(reply, *wire);
    }
    finish(call, grpc::Status::OK);
  }

  // The only Finish of a call that reached the loop.
  void finish(Call& call, const grpc::Status& status) {
    if (metrics_) {
      metrics_->count_request(call.method, code_name(status.error_code()));
      if (!is_held(call.method)) {
        metrics_->observe_request(call.method, std::chrono::steady_clock::now() - call.arrived);
      }
    }
    call.Finish(status);
  }

  Service& service_;
  Metrics* metrics_;
  std::map<std::uint64_t, OpenCall> calls_;
  Refusal last_refusal_;
  bool is_stopping_ = false;
};

Call::Call(std::shared_ptr<Doors> doors, std::string_view method_called)
    : number(++doors->last_number), method(method_called), doors_(std::move(doors)) {
  ++doors_->open_calls;
}

Call::~Call() { --doors_->open_calls; }

void Call::OnCancel() {
  doors_->mailbox->leave([doors = doors_, number = number] { doors->cancel(number); });
}

// The generated service: each reaction copies its request, leaves it for the loop, and returns.
class Reactions final : public v1::Rendezvous::CallbackService {
 public:
  explicit Reactions(std::shared_ptr<Doors> doors) : doors_(std::move(doors)) {}

  using Reactor = grpc::ServerUnaryReactor;
  using Machine = rendezvous::Service;  // the generated base has a Service of its own
  using Arrival = grpc::CallbackServerContext;

  Reactor* Join(Arrival* call, const v1::JoinRequest* wire, v1::JoinReply* reply) override {
    return take("Join", AnyRun::Refused, *wire, with_address(read(*wire), *call), &Machine::join,
                reply);
  }
  Reactor* Watch(Arrival*, const v1::WatchRequest* wire, v1::WatchReply* reply) override {
    return take("Watch", AnyRun::Refused, *wire, read(*wire), &Machine::watch, reply);
  }
  Reactor* Heartbeat(Arrival* call, const v1::HeartbeatRequest* wire,
                     v1::HeartbeatReply* reply) override {
    return take("Heartbeat", AnyRun::Refused, *wire, with_address(read(*wire), *call),
                &Machine::heartbeat, reply);
  }
  Reactor* Leave(Arrival*, const v1::LeaveRequest* wire, v1::Acknowledgement* reply) override {
    return take("Leave", AnyRun::Refused, *wire, read(*wire), &Machine::leave, reply);
  }
  Reactor* Publish(Arrival*, const v1::PublishRequest* wire, v1::Acknowledgement* reply) override {
    return take("Publish", AnyRun::Refused, *wire, read(*wire), &Machine::publish, reply);
  }
  Reactor* Lookup(Arrival*, const v1::LookupRequest* wire, v1::LookupReply* reply) override {
    return take("Lookup", AnyRun::Refused, *wire, read(*wire), &Machine::lookup, reply);
  }
  Reactor* Drain(Arrival*, const v1::DrainRequest* wire, v1::Acknowledgement* reply) override {
    return take("Drain", AnyRun::Accepted, *wire, read(*wire), &Machine::drain, reply);
  }
  Reactor* Stop(Arrival*, const v1::StopRequest* wire, v1::Acknowledgement* reply) override {
    return take("Stop", AnyRun::Accepted, *wire, read(*wire), &Machine::stop, reply);
  }
  Reactor* GetStatus(Arrival*, const v1::GetStatusRequest* wire,
                     v1::GetStatusReply* reply) override {
    return leave("GetStatus", [this, refusal = check(*wire, AnyRun::Accepted), reply](Call& call) {
      refusal ? doors_->refuse(call, *refusal) : doors_->tell_status(call, reply);
    });
  }

 private:
  template <class WireRequest>
  std::optional<Refusal> check(const WireRequest& wire, AnyRun any_run) const {
    return check_caller(wire.caller(), doors_->run_id, any_run);
  }

  template <class Request>
  static Converted<Request> with_address(Converted<Request> request, const Arrival& call) {
    auto* given = std::get_if<Request>(&request);
    if (given && given->facts.address.empty()) given->facts.address = address_of_peer(call.peer());
    return request;
  }

  template <class WireRequest, class Request, class Reply, class WireReply>
  Reactor* take(std::string_view method, AnyRun any_run, const WireRequest& wire,
                Converted<Request> request,
                Ticket (Machine::*open)(Request, std::function<void(Reply)>), WireReply* reply) {
    if (auto refusal = check(wire, any_run)) request = *refusal;
    return leave(method, [this, request = std::move(request), open, reply](Call& call) {
      if (const auto* refusal = std::get_if<Refusal>(&request)) {
        doors_->refuse(call, *refusal);
      } else {
        doors_->begin(call, open, std::get<Request>(request), reply);
      }
    });
  }

  // `work` lives in the mailbox, which the server empties before this object dies.
  Reactor* leave(std::string_view method, std::function<void(Call&)> work) {
    Call* const call = new Call(doors_, method);
    if (doors_->open_calls > kOpenCallsMax) {
      call->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                    "the rendezvous service has too many open calls; try again later"});
    } else if (!doors_->mailbox->leave([call, work = std::move(work)] { work(*call); })) {
      call->Finish(stopping());
    }
    return call;
  }

  std::shared_ptr<Doors> doors_;
};

void set_limits(grpc::ServerBuilder& builder, std::size_t memory_bytes_max) {
  // Two services would else bind one port, silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kRequestBytesMax);
  builder.SetResourceQuota(grpc::ResourceQuota("rendezvous").Resize(memory_bytes_max));
  builder.SetMaxSendMessageSize(kReplyBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeLimitMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(kKeepaliveTime.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(kKeepaliveLimit.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(kPingIntervalMin.count()));
}

}  // namespace

struct Server::Impl {
  Impl(boost::asio::io_context& loop, Service& service, Options options_given, Metrics* metrics)
      : options(std::move(options_given)),
        doors(std::make_shared<Doors>(loop, service, metrics)),
        reactions(doors) {
    start_grpc();
    open_listeners();
  }

  ~Impl() {
    doors->stop();
    if (!server) return;
    server->Shutdown(std::chrono::system_clock::now() + Server::kShutdownLimit);
    server.reset();
  }

  void open_listeners() {
    grpc::ServerBuilder builder;
    set_limits(builder, options.memory_bytes_max);
    builder.RegisterService(&reactions);
    std::vector<int> ports(options.listen.size());
    for (std::size_t each = 0; each < ports.size(); ++each) {
      const Endpoint& endpoint = options.listen[each];
      if (!endpoint.unix_path.empty()) claims.emplace_back(endpoint.unix_path);
      builder.AddListeningPort(to_string(endpoint), credentials_for(endpoint), &ports[each]);
    }
    server = builder.BuildAndStart();
    for (std::size_t each = 0; each < ports.size(); ++each) {
      if (ports[each] == 0) throw explain_failed_listen(options.listen[each]);
      finish_listener(options.listen[each], ports[each]);
    }
  }

  void finish_listener(Endpoint& endpoint, int port) {
    if (endpoint.unix_path.empty()) {
      endpoint.port = port;
    } else {
      ::chmod(endpoint.unix_path.c_str(), S_IRUSR | S_IWUSR);
    }
    const std::string where = to_string(endpoint);
    log::info("listening", {{"endpoint", where}, {"tls", needs_tls(endpoint)}});
    if (!is_loopback(endpoint) && options.insecure_network) warn_of_plain_text(where);
  }

  bool needs_tls(const Endpoint& endpoint) const {
    return !is_loopback(endpoint) && !options.insecure_network;
  }

  std::shared_ptr<grpc::ServerCredentials> credentials_for(const Endpoint& endpoint) {
    if (!needs_tls(endpoint)) return server_credentials(nullptr);
    if (!options.credentials) {
      throw ListenError("cannot listen on " + to_string(endpoint) +
                            ": beyond this machine the service speaks TLS; give its keys with "
                            "--tls DIR, or --insecure-network for plain text",
                        false);
    }
    warn_of_failed_handshakes();
    return server_credentials(&*options.credentials);
  }

  Options options;
  std::shared_ptr<Doors> doors;
  Reactions reactions;
  std::vector<UnixPathClaim> claims;  // released after the listeners are closed
  std::unique_ptr<grpc::Server> server;
};

Server::Server(boost::asio::io_context& loop, Service& service, Options options, Metrics* metrics)
    : impl_(std::make_unique<Impl>(loop, service, std::move(options), metrics)) {}
Server::~Server() = default;
const std::vector<Endpoint>& Server::endpoints() const { return impl_->options.listen; }

}  // namespace lrun::rendezvous
