// What must hold after every step of the rendezvous, whatever happened.
//
// Owns the memory that the checks need: open tickets, the newest generation, what was charged.
// Refuses to look inside the machine: it judges events, actions and status, as everybody sees them.
// Pure. Called by tests and by the simulator, one object per life of the service.
//
//   * generations strictly increase and are never reused
//   * the assignments of one generation agree and cover [0, world_size) exactly once
//   * each ticket is answered exactly once, by an answer of its kind
//   * no deadline lies in the past
//   * a group has min_nodes to max_nodes nodes, and no expired member is in a new one
//   * a refused message changes nothing
//   * a generation is charged once, and never more than max_restarts in all
//   * phases follow each other, and a closed job stays closed
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

// One step as seen from outside.
struct ObservedStep {
  Instant now;
  const Event& event;
  const std::vector<Action>& actions;
  const Status& after;
  std::optional<Instant> next_deadline;
};

class Invariants {
 public:
  // `before`: the status of the machine before its first step.
  explicit Invariants(const Status& before);

  // One sentence for each broken invariant; none when all hold.
  std::vector<std::string> check(const ObservedStep& step);

 private:
  enum class TicketKind { Join, Heartbeat, Watch, Lookup, Acknowledged };

  void open_ticket(const Event& event);
  void check_tickets(const ObservedStep& step);
  void answer(Ticket ticket, TicketKind kind);
  void check_phases(const ObservedStep& step);
  void check_generation(const ObservedStep& step);
  void check_budget(const ObservedStep& step);
  void check_deadline(const ObservedStep& step);
  void check_refused(const ObservedStep& step);
  void require(bool holds, const std::string& sentence);

  std::map<Ticket, TicketKind> open_;
  Phase phase_;
  Generation newest_;
  int restarts_spent_ = 0;
  int charges_of_newest_ = 0;
  std::optional<Instant> deadline_;  // announced by the step before
  std::vector<std::string> broken_;
};

}  // namespace lrun::rendezvous
