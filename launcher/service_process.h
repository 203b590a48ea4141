// `lrun rendezvous`: a process that serves one job's rendezvous and runs no workers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "launcher/metrics_server.h"
#include "launcher/place.h"
#include "launcher/run_options.h"
#include "launcher/service_host.h"
#include "launcher/signals.h"

namespace prometheus {
class Registry;
}

namespace lrun::launcher {

class ServiceProcess {
 public:
  // Throws std::exception with one line when the port or the keys cannot be had.
  ServiceProcess(const RunOptions& options, Place place);
  ~ServiceProcess();

  // Until the job is over, or a signal comes. Returns the exit code.
  int run();

 private:
  Place place_;
  boost::asio::io_context loop_{1};
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<ServiceHost> host_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Signals> signals_;
  std::optional<int> signal_;
};

// The metrics port of a process that hosts a service without an agent of its own; none without the
// option. Prints where it is.
std::unique_ptr<MetricsServer> serve_service_metrics(boost::asio::io_context& loop,
                                                     const RunOptions& options,
                                                     prometheus::Registry& registry,
                                                     ServiceHost& host);

}  // namespace lrun::launcher
