// Who is in the group, in which order: the rendezvous as a pure state machine.
//
// Owns phases, leases, generations, rank order, the budget of restarts and the blackboard. Refuses
// to know clocks, sockets, threads, logs. Called by rendezvous/service (the shell) on its loop, and
// by the simulator. The table of phase × event is architecture.md §4.
#pragma once

#include <cstdint>
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
  // answered by exactly one action, in this call or a later one.
  std::vector<Action> step(Instant now, const Event& event);

  // When to call `step(…, TimePassed{})` at the latest; never in the past after a step.
  std::optional<Instant> next_deadline() const;

  Status status(Instant now) const;
};

}  // namespace lrun::rendezvous
