#include "launcher/service_host.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <ctime>

namespace lrun::launcher {
namespace {

constexpr Duration kLingerPoll = std::chrono::milliseconds(20);
constexpr Duration kLingerLimit = std::chrono::seconds(5);

rendezvous::Config config_of(const RunOptions& options, const Place& place,
                             bool may_have_predecessor) {
  rendezvous::Config config;
  config.run_id = place.run_id;
  config.min_nodes = place.nodes.min;
  config.max_nodes = place.nodes.max;
  config.max_restarts = options.max_restarts;
  config.heartbeat = options.heartbeat;
  config.lease = options.lease;
  config.last_call = options.last_call;
  config.join_timeout = options.join_timeout;
  if (options.shutdown_timeout) config.kill_grace = *options.shutdown_timeout;
  config.may_have_predecessor = may_have_predecessor;
  return config;
}

// Wall-clock seconds: greater than those of any earlier life of this job's service.
std::uint64_t new_term() { return static_cast<std::uint64_t>(std::time(nullptr)); }

// Asks again and again until nobody is left to be told, or the bound is reached.
class Linger : public std::enable_shared_from_this<Linger> {
 public:
  Linger(boost::asio::io_context& loop, const rendezvous::Service& service, NodeId except,
         std::function<void()> on_done)
      : timer_(loop), service_(service), except_(std::move(except)), on_done_(std::move(on_done)) {}

  // The machine may have told everybody, but its answers are still to be sent: so with other nodes
  // at least one pause.
  void start() {
    const rendezvous::Status status = service_.status();
    const bool has_others =
        std::any_of(status.nodes.begin(), status.nodes.end(),
                    [this](const auto& node) { return node.facts.node != except_; });
    if (!has_others) return on_done_();
    pause();
  }

 private:
  void look() {
    const rendezvous::Status status = service_.status();
    const Duration limit = std::min<Duration>(kLingerLimit, 2 * status.config.heartbeat);
    if (waited_ >= limit || !is_awaited(status)) return on_done_();
    pause();
  }

  void pause() {
    waited_ += kLingerPoll;
    timer_.expires_after(kLingerPoll);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error) self->look();
    });
  }

  bool is_awaited(const rendezvous::Status& status) const {
    return std::any_of(status.nodes.begin(), status.nodes.end(), [this](const auto& node) {
      return node.facts.node != except_ && !node.knows_end;
    });
  }

  boost::asio::steady_timer timer_;
  const rendezvous::Service& service_;
  NodeId except_;
  std::function<void()> on_done_;
  Duration waited_{};
};

}  // namespace

std::optional<rendezvous::Credentials> credentials_for(const RunOptions& options,
                                                       const Place& place) {
  if (!options.tls_dir.empty()) return rendezvous::load_credentials(options.tls_dir);
  if (!place.leaves_machine || options.insecure_network) return std::nullopt;
  return rendezvous::load_or_make_credentials(rendezvous::user_tls_folder());
}

ServiceHost::ServiceHost(boost::asio::io_context& loop, prometheus::Registry& registry,
                         const RunOptions& options, const Place& place, bool may_have_predecessor)
    : loop_(loop),
      metrics_(registry),
      service_(loop,
               {.config = config_of(options, place, may_have_predecessor),
                .term = new_term(),
                .metrics = &metrics_},
               [this](const rendezvous::JobClosed& closed) {
                 closed_ = closed;
                 if (on_closed_) on_closed_();
               }) {}

bool ServiceHost::listen(const Place& place,
                         const std::optional<rendezvous::Credentials>& credentials,
                         bool insecure_network) {
  std::vector<std::vector<rendezvous::Endpoint>> tries;
  const rendezvous::Endpoint socket{.unix_path = place.socket, .host = "", .port = 0};
  for (const rendezvous::Endpoint& candidate : place.listen) tries.push_back({socket, candidate});
  if (tries.empty()) tries.push_back({socket});
  for (const auto& endpoints : tries) {
    try {
      server_ = std::make_unique<rendezvous::Server>(
          loop_, service_,
          rendezvous::Server::Options{.listen = endpoints,
                                      .credentials = credentials,
                                      .insecure_network = insecure_network},
          &metrics_);
      return true;
    } catch (const rendezvous::ListenError& error) {
      if (!error.is_taken) throw;
      if (endpoints == tries.back() && !place.joins_if_taken) throw;
    }
  }
  return false;
}

std::optional<rendezvous::Endpoint> ServiceHost::endpoint() const {
  if (server_ == nullptr) return std::nullopt;
  for (const rendezvous::Endpoint& one : server_->endpoints()) {
    if (one.unix_path.empty()) return one;
  }
  return std::nullopt;
}

void ServiceHost::linger(const NodeId& except, std::function<void()> on_done) {
  std::make_shared<Linger>(loop_, service_, except, std::move(on_done))->start();
}

void ServiceHost::update_metrics() { metrics_.show(service_.status()); }

}  // namespace lrun::launcher
