// Gauges and counters of one agent and its workers (docs/metrics.md).
//
// Owns the families lrun_agent_*, lrun_worker_*, lrun_time_seconds_total and
// lrun_output_dropped_bytes_total. Every series exists, with 0, from the start. Refuses to know the
// exporter. Called by agent/agent, on the loop; reading the registry from another thread is safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "agent/events.h"
#include "agent/stream_choice.h"
#include "agent/supervisor.h"

namespace prometheus {
class Registry;
}

namespace lrun::agent {

enum class HeartbeatResult { Answered, Late, Failed };
// Why a new group was formed without a charge.
enum class ReformCause { NodeJoined, NodeLost, Drained, WorkerFailed, LeaseLost };

class Metrics {
 public:
  Metrics(prometheus::Registry& registry, int slots, Instant now);
  ~Metrics();

  // Books the time since the last call to the phase of that time, then looks at the workers anew.
  // Phases add up to wall time × slots.
  void update(Instant now, AgentState state, const std::vector<WorkerView>& workers);
  void count_restart(FailureKind kind);
  void count_reform(ReformCause cause);
  void count_exit(const ExitStatus& status, bool was_stopped);
  void count_heartbeat(HeartbeatResult result);
  void count_dropped(Stream stream, std::size_t bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::agent
