// One node's agent: the shell around the supervisor.
//
// Owns the supervisor, its one timer, the workers (through the keeper) and the calls to the
// rendezvous. Turns the world into events and actions into deeds; decides nothing. The launcher
// owns it. One loop, one thread: every function and every callback belongs to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/events.h"
#include "agent/keeper.h"
#include "agent/output.h"
#include "agent/supervisor.h"
#include "proto/worker_env.h"
#include "rendezvous/link.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

class Metrics;

struct AgentOptions {
  // Without `facts.master_port` the agent reserves a port; without `facts.address` it advertises
  // its end of the connection to the service.
  Config config{};
  // The program and its arguments. In the arguments, not in the program itself, ${local_rank} and
  // $local_rank become the local rank.
  std::vector<std::string> command{};
  std::string program{};  // as the failure report names it
  Environment base_environment{};
  // For TORCHELASTIC_SIGNALS_TO_HANDLE.
  std::string signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  OutputOptions output{};
};

class Agent {
 public:
  // `link` and `metrics` (may be null) outlive the agent. `on_finish` runs once, from the loop,
  // when every worker, the keeper and the last call are over and the output is on the console.
  Agent(boost::asio::io_context& loop, AgentOptions options, Keeper keeper, rendezvous::Link& link,
        Metrics* metrics, std::function<void(const Finish&)> on_finish);
  ~Agent();

  void start();
  // A handled signal has reached this process.
  void signal(int signal_number);

  AgentState state() const;
  const std::optional<Assignment>& assignment() const;
  // Brings the gauges up to date, for a scrape.
  void update_metrics();
  // The block for stderr after a failure; empty after success.
  std::string report() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::agent
