// The process of one node: its agent, the service when this node hosts it, metrics, signals.
//
// Owns every long-lived object of the process; built and destroyed in the order written below.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/keeper.h"
#include "agent/metrics.h"
#include "launcher/metrics_server.h"
#include "launcher/place.h"
#include "launcher/run_options.h"
#include "launcher/runtime_folder.h"
#include "launcher/service_host.h"
#include "launcher/signals.h"
#include "rendezvous/client.h"

namespace prometheus {
class Registry;
}

namespace lrun::launcher {

class AgentProcess {
 public:
  // Checks everything that can be wrong before anything starts; throws std::exception with one
  // line.
  AgentProcess(const RunCommand& command, Place place, std::vector<std::string> program,
               const Environment& environment);
  ~AgentProcess();

  // Until this node's part is over. Returns the exit code.
  int run();

 private:
  void open_service();
  void announce() const;
  void announce_join_line() const;
  void make_agent(std::vector<std::string> program, const Environment& environment);
  void serve_metrics();
  void open_socket_later();
  void release_discovery_lock_when_known();
  void ask_whether_known();
  void release_discovery_lock_if_in(const rendezvous::Status& status);
  void on_finish(const agent::Finish& finish);
  void update_metrics();
  Health health() const;
  Health readiness() const;

  RunCommand command_;
  Place place_;
  NodeName node_name_;
  std::optional<rendezvous::Credentials> credentials_;
  agent::Keeper keeper_;  // forked before the loop, gRPC and every thread
  boost::asio::io_context loop_{1};
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<ServiceHost> host_;  // when this node serves
  std::unique_ptr<rendezvous::Link> link_;
  rendezvous::Client* client_ = nullptr;  // the link, when it is one to another process
  std::unique_ptr<agent::Metrics> agent_metrics_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Signals> signals_;
  boost::asio::steady_timer socket_timer_{loop_};
  boost::asio::steady_timer lock_timer_{loop_};
  Duration lock_waited_{};
  std::string run_folder_;
  std::optional<agent::Finish> finish_;
};

}  // namespace lrun::launcher
