#include "launcher/service_process.h"

#include <prometheus/registry.h>

#include <cstdio>

#include "base/log.h"
#include "launcher/addresses.h"
#include "launcher/exit_codes.h"
#include "launcher/finish_report.h"
#include "launcher/runtime_folder.h"

namespace lrun::launcher {

std::unique_ptr<MetricsServer> serve_service_metrics(boost::asio::io_context& loop,
                                                     const RunOptions& options,
                                                     prometheus::Registry& registry,
                                                     ServiceHost& host) {
  if (!options.metrics_port) return nullptr;
  const auto health = [] { return Health{true, "the rendezvous runs"}; };
  const auto readiness = [&host] {
    const rendezvous::Status status = host.service().status();
    const bool is_active = status.phase == rendezvous::Phase::Active;
    return Health{is_active, is_active ? "generation " + to_string(status.generation) + " runs"
                                       : "no generation runs: waiting for nodes"};
  };
  auto server = std::make_unique<MetricsServer>(
      loop,
      MetricsServer::Options{.address = options.metrics_address,
                             .port = *options.metrics_port,
                             .accepted_hosts = {host_name(), reachable_address()}},
      registry, [&host] { host.update_metrics(); }, health, readiness);
  std::fprintf(stderr, "lrun: metrics of the rendezvous at http://%s:%d/metrics\n",
               options.metrics_address.c_str(), server->port());
  return server;
}

ServiceProcess::ServiceProcess(const RunOptions& options, Place place)
    : place_(std::move(place)), registry_(std::make_shared<prometheus::Registry>()) {
  const auto credentials = credentials_for(options, place_);
  host_ = std::make_unique<ServiceHost>(loop_, *registry_, options, place_, true);
  host_->listen(place_, credentials, options.insecure_network);
  unlock_file(place_.discovery_lock);
  metrics_server_ = serve_service_metrics(loop_, options, *registry_, *host_);
  signals_ = std::make_unique<Signals>(loop_, [this](int number) { signal_ = number; });
  if (const auto endpoint = host_->endpoint()) {
    std::fprintf(stderr, "lrun: rendezvous of job %s at %s\n", place_.run_id.c_str(),
                 to_string(*endpoint).c_str());
  }
}

ServiceProcess::~ServiceProcess() = default;

int ServiceProcess::run() {
  while (!signal_ && !host_->closed() && loop_.run_one() > 0) {
  }
  if (signal_) return kExitSignalBase + *signal_;
  bool is_over = false;
  host_->linger(NodeId{}, [&is_over] { is_over = true; });
  while (!is_over && loop_.run_one() > 0) {
  }
  return exit_code_of(host_->closed()->outcome);
}

}  // namespace lrun::launcher
