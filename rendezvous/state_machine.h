// Who is in the group, in which order: the rendezvous as a pure state machine.
//
// Owns phases, leases, generations, rank order, the budget of restarts and the blackboard. Refuses
// to know clocks, sockets, threads, logs. Called by rendezvous/service (the shell) on its loop, and
// by the simulator.
//
//                 all members of the newest reported generation have reported
//   Recovering ───────────────────────────────────────────────────────────────► Active ──► Closed
//       │ one lease                                                             │    ▲      (from
//       ▼          min_nodes wait           nobody more is expected             │    │       every
//    Forming ◄───────────────────► LastCall ────────────────────────────────────│────┘       phase)
//       ▲                                                                       │
//       └── participant lost, drained, failed or back; newcomer where there is room
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

class StateMachine {
 public:
  // `term`: greater than that of any earlier life of this job's service, as far as known (the
  // shell takes seconds since 1970). It is raised above any term heard.
  StateMachine(Config config, std::uint64_t term, Instant now);
  ~StateMachine();
  StateMachine(StateMachine&&) noexcept;
  StateMachine& operator=(StateMachine&&) noexcept;

  // `now` never decreases. Actions are to be carried out in order. Each ticket given in an event is
  // answered by exactly one action, in this call or a later one, unless `CallEnded` came first.
  // A shell that was not running for a while says `LagMeasured` before anything else, else the
  // pause is held against the nodes.
  std::vector<Action> step(Instant now, const Event& event);

  // When to call `step(…, TimePassed{})` at the latest; never in the past after a step.
  std::optional<Instant> next_deadline() const;

  Status status(Instant now) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// True when another node would not get into the group: it holds max_nodes nodes, or is closed. With
// local discovery (no endpoint given) a full job means: start a new one.
bool is_full(const Status& status);

}  // namespace lrun::rendezvous
