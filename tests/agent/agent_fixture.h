// One agent with real workers around a real rendezvous service on the same loop.
#pragma once

#include <prometheus/registry.h>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/metrics.h"
#include "rendezvous/local_link.h"
#include "rendezvous/service.h"
#include "tests/agent/io_support.h"

namespace lrun::agent::testing {

class AgentRun {
 public:
  // `command` with one slot, no restarts, both streams teed into files that stand for the console.
  explicit AgentRun(std::vector<std::string> command);
  ~AgentRun();

  // Before start(): anything may be changed. Later changes have no effect.
  AgentOptions options;

  void start();
  // Runs the loop until `is_true`, or the job's end, or kTestLimit; returns whether it is true.
  bool run_until(const std::function<bool()>& is_true);
  // Runs it to the job's end; none when there is none in time.
  std::optional<Finish> run();

  Agent& agent() { return *agent_; }
  int keeper_pid() const { return keeper_pid_; }
  Instant started_at() const { return started_at_; }
  const ProcessMark& mark() const { return mark_; }
  std::string console_stdout() const;
  std::string console_stderr() const;
  // A file below the run's folder.
  std::string log(const std::string& path) const;
  bool has_log(const std::string& path) const;
  // The value of a series, by name and "label=value" pairs; −1 when there is none.
  double metric(const std::string& name, const std::vector<std::string>& labels = {});
  double metric_sum(const std::string& name);

 private:
  TemporaryFolder folder_;
  ProcessMark mark_;
  boost::asio::io_context loop_;
  prometheus::Registry registry_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<rendezvous::Service> service_;
  std::unique_ptr<rendezvous::LocalLink> link_;
  std::unique_ptr<Agent> agent_;
  Fd stdout_;
  Fd stderr_;
  int keeper_pid_ = -1;
  Instant started_at_{};
  std::optional<Finish> finish_;
};

}  // namespace lrun::agent::testing
