// The supervision of one node's workers as a pure state machine.
//
// Owns what is wanted and what is actual, the stop of a group, the budget's local view and the
// fence. Refuses to know clocks, processes, sockets. Called by agent/agent (the shell) and by the
// simulator. The table of state × event is in docs/supervisor.md.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "agent/events.h"

namespace lrun::agent {

// One worker as the supervisor sees it, for metrics and status.
struct WorkerView {
  LocalRank local_rank;
  GlobalRank global_rank;
  int pid = 0;
  bool is_alive = false;
  bool is_live = false;  // answers on its channel
  channel::Progress progress;
  Instant last_heard;
};

class Supervisor {
 public:
  Supervisor(Config config, Instant now);
  ~Supervisor();
  Supervisor(Supervisor&&) noexcept;
  Supervisor& operator=(Supervisor&&) noexcept;

  // `now` never decreases. Actions are to be carried out in order.
  std::vector<Action> step(Instant now, const Event& event);
  // When to call `step(…, TimePassed{})` at the latest; never in the past after a step.
  std::optional<Instant> next_deadline() const;

  AgentState state() const;
  // Of the generation being run, or the last one that was.
  const std::optional<Assignment>& assignment() const;
  std::vector<WorkerView> workers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::agent
