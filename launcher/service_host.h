// The rendezvous as this process hosts it: service, listeners, its metrics, and its end.
//
// Owns them in the right order. Refuses to know agents. Thread: the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/place.h"
#include "launcher/run_options.h"
#include "rendezvous/credentials.h"
#include "rendezvous/metrics.h"
#include "rendezvous/server.h"
#include "rendezvous/service.h"

namespace lrun::launcher {

// The keys for everything beyond this machine; none where they are not needed.
// Throws rendezvous::CredentialsError.
std::optional<rendezvous::Credentials> credentials_for(const RunOptions& options,
                                                       const Place& place);

class ServiceHost {
 public:
  // `may_have_predecessor`: a service that may replace one that died, so agents may be running.
  ServiceHost(boost::asio::io_context& loop, prometheus::Registry& registry,
              const RunOptions& options, const Place& place, bool may_have_predecessor);

  // Opens the job's socket and the first free one of `place.listen`. False: every port is taken by
  // others. Throws rendezvous::ListenError for anything else.
  bool listen(const Place& place, const std::optional<rendezvous::Credentials>& credentials,
              bool insecure_network);

  // The TCP endpoint being served, with its port.
  std::optional<rendezvous::Endpoint> endpoint() const;
  rendezvous::Service& service() { return service_; }
  const std::optional<rendezvous::JobClosed>& closed() const { return closed_; }
  void on_closed(std::function<void()> callback) { on_closed_ = std::move(callback); }

  // Calls back once every other node has been told that the job is over, or after a bound. The
  // host of the service exits last.
  void linger(const NodeId& except, std::function<void()> on_done);
  void update_metrics();

 private:
  boost::asio::io_context& loop_;
  rendezvous::Metrics metrics_;
  std::optional<rendezvous::JobClosed> closed_;
  std::function<void()> on_closed_;
  rendezvous::Service service_;
  std::unique_ptr<rendezvous::Server> server_;
};

}  // namespace lrun::launcher
