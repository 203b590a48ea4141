#include "rendezvous/invariants.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace lrun::rendezvous {
namespace {

template <class... Cases>
struct Overloads : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloads(Cases...) -> Overloads<Cases...>;

template <class Kind>
std::vector<Kind> all_of_kind(const std::vector<Action>& actions) {
  std::vector<Kind> found;
  for (const Action& action : actions) {
    if (const auto* wanted = std::get_if<Kind>(&action)) found.push_back(*wanted);
  }
  return found;
}

// The members that hold a place in the current generation.
std::vector<NodeStatus> seated(const Status& status) {
  std::vector<NodeStatus> found;
  for (const NodeStatus& node : status.nodes) {
    const bool is_in = node.role == Role::Participant || node.role == Role::Finished;
    if (is_in && node.assignment) found.push_back(node);
  }
  return found;
}

// What all assignments of one generation must have in common.
auto common_part(const Assignment& assignment) {
  return std::tuple(assignment.generation, assignment.group_world_size, assignment.world_size,
                    assignment.master_addr, assignment.master_port, assignment.restarts_spent,
                    assignment.reason);
}

bool agree(const std::vector<NodeStatus>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeStatus& node) {
    return common_part(*node.assignment) == common_part(*nodes.front().assignment);
  });
}

// Every worker of every node has its own rank, and none is left out.
bool cover_world(const std::vector<NodeStatus>& nodes) {
  std::set<int> global_ranks;
  std::set<GroupRank> group_ranks;
  int workers = 0;
  for (const NodeStatus& node : nodes) {
    group_ranks.insert(node.assignment->group_rank);
    for (int local = 0; local < node.assignment->slots; ++local, ++workers) {
      global_ranks.insert(node.assignment->first_global_rank.value + local);
    }
  }
  const Assignment& any = *nodes.front().assignment;
  return workers == any.world_size && std::cmp_equal(global_ranks.size(), workers) &&
         *global_ranks.begin() == 0 && *global_ranks.rbegin() == workers - 1 &&
         std::cmp_equal(group_ranks.size(), any.group_world_size) &&
         group_ranks.begin()->value == 0 && group_ranks.rbegin()->value == any.group_world_size - 1;
}

bool changes_group(const Action& action) {
  return std::holds_alternative<PhaseChanged>(action) ||
         std::holds_alternative<GenerationPublished>(action) ||
         std::holds_alternative<NodeDeparted>(action) ||
         std::holds_alternative<RestartCharged>(action) ||
         std::holds_alternative<JobClosed>(action);
}

// A Join that timed out also removes its node.
bool is_refused(const std::vector<Action>& actions) {
  const auto refusals = all_of_kind<CallRefused>(actions);
  return !refusals.empty() && std::none_of(refusals.begin(), refusals.end(), [](const auto& call) {
    return call.refusal.reason == RefuseReason::JoinTimedOut;
  });
}

}  // namespace

Invariants::Invariants(const Status& before)
    : phase_(before.phase), newest_(before.generation), restarts_spent_(before.restarts_spent) {}

std::vector<std::string> Invariants::check(const ObservedStep& step) {
  open_ticket(step.event);
  check_tickets(step);
  check_refused(step);
  check_phases(step);
  check_budget(step);  // a step charges the old generation before it publishes a new one
  check_generation(step);
  check_deadline(step);
  return std::exchange(broken_, {});
}

void Invariants::require(bool holds, const std::string& sentence) {
  if (!holds) broken_.push_back(sentence);
}

void Invariants::open_ticket(const Event& event) {
  const auto open = [&](Ticket ticket, TicketKind kind) { open_[ticket] = kind; };
  std::visit(
      Overloads{[&](const JoinReceived& call) { open(call.ticket, TicketKind::Join); },
                [&](const HeartbeatReceived& call) { open(call.ticket, TicketKind::Heartbeat); },
                [&](const WatchReceived& call) { open(call.ticket, TicketKind::Watch); },
                [&](const LookupReceived& call) { open(call.ticket, TicketKind::Lookup); },
                [&](const LeaveReceived& call) { open(call.ticket, TicketKind::Acknowledged); },
                [&](const PublishReceived& call) { open(call.ticket, TicketKind::Acknowledged); },
                [&](const DrainReceived& call) { open(call.ticket, TicketKind::Acknowledged); },
                [&](const StopReceived& call) { open(call.ticket, TicketKind::Acknowledged); },
                [&](const CallEnded& call) { open_.erase(call.ticket); }, [](const LagMeasured&) {},
                [](const TimePassed&) {}},
      event);
}

void Invariants::check_tickets(const ObservedStep& step) {
  for (const Action& action : step.actions) {
    std::visit(
        Overloads{
            [&](const AnswerJoin& reply) { answer(reply.ticket, TicketKind::Join); },
            [&](const AnswerHeartbeat& reply) { answer(reply.ticket, TicketKind::Heartbeat); },
            [&](const AnswerWatch& reply) { answer(reply.ticket, TicketKind::Watch); },
            [&](const AnswerLookup& reply) { answer(reply.ticket, TicketKind::Lookup); },
            [&](const Acknowledge& reply) { answer(reply.ticket, TicketKind::Acknowledged); },
            [](const PhaseChanged&) {}, [](const GenerationPublished&) {}, [](const NodeJoined&) {},
            [](const NodeDeparted&) {}, [](const RestartCharged&) {}, [](const CallRefused&) {},
            [](const JobClosed&) {}},
        action);
  }
  for (const auto& [ticket, kind] : open_) {
    const bool may_wait = kind != TicketKind::Heartbeat &&
                          (kind != TicketKind::Acknowledged || phase_ == Phase::Recovering);
    require(may_wait, "ticket " + std::to_string(ticket.value) + " was not answered at once");
  }
}

void Invariants::answer(Ticket ticket, TicketKind kind) {
  const auto found = open_.find(ticket);
  const std::string name = "ticket " + std::to_string(ticket.value);
  require(found != open_.end(), name + " is answered but not open");
  if (found == open_.end()) return;
  require(found->second == kind, name + " is answered by the wrong kind of answer");
  open_.erase(found);
}

void Invariants::check_refused(const ObservedStep& step) {
  const bool time_acts = deadline_ && *deadline_ <= step.now;
  if (time_acts || !is_refused(step.actions)) return;
  require(std::none_of(step.actions.begin(), step.actions.end(), changes_group),
          "a refused message has changed the group");
}

void Invariants::check_phases(const ObservedStep& step) {
  for (const PhaseChanged& change : all_of_kind<PhaseChanged>(step.actions)) {
    require(change.from == phase_, "a change of phase does not begin where the last one ended");
    require(change.from != Phase::Closed, "a closed job has been opened again");
    require(!change.reason.empty(), "a change of phase without a reason");
    phase_ = change.to;
  }
  require(step.after.phase == phase_, "the phase has changed without being reported");
  require(step.after.outcome.has_value() == (phase_ == Phase::Closed),
          "a closed job has an outcome, and no other has one");
}

void Invariants::check_generation(const ObservedStep& step) {
  for (const GenerationPublished& published : all_of_kind<GenerationPublished>(step.actions)) {
    const std::string name = "generation " + to_string(published.generation);
    require(published.generation > newest_, name + " is not newer than the one before");
    require(published.nodes >= step.after.config.min_nodes, name + " has too few nodes");
    require(published.nodes <= step.after.config.max_nodes, name + " has too many nodes");
    newest_ = published.generation;
    charges_of_newest_ = 0;
    const auto nodes = seated(step.after);
    require(std::cmp_equal(nodes.size(), published.nodes), name + " does not seat all its nodes");
    require(!nodes.empty() && agree(nodes), "the assignments of " + name + " disagree");
    require(!nodes.empty() && cover_world(nodes), name + " does not cover its world once");
    require(std::all_of(nodes.begin(), nodes.end(),
                        [](const NodeStatus& node) { return node.lease_left > Duration::zero(); }),
            name + " contains an expired member");
  }
  require(step.after.generation >= newest_, "the generation has gone back");
  newest_ = std::max(newest_, step.after.generation);
  const auto nodes = seated(step.after);
  if (phase_ != Phase::Active) return;
  require(nodes.empty() || agree(nodes), "participants of different generations");
}

void Invariants::check_budget(const ObservedStep& step) {
  const auto charges = all_of_kind<RestartCharged>(step.actions);
  charges_of_newest_ += static_cast<int>(charges.size());
  require(charges_of_newest_ <= 1, "generation " + to_string(newest_) + " was charged twice");
  require(step.after.restarts_spent >= restarts_spent_, "restarts have been forgotten");
  require(step.after.restarts_spent <= step.after.config.max_restarts, "the budget is overspent");
  restarts_spent_ = step.after.restarts_spent;
}

void Invariants::check_deadline(const ObservedStep& step) {
  require(!step.next_deadline || *step.next_deadline > step.now,
          "the next deadline is not in the future");
  deadline_ = step.next_deadline;
}

}  // namespace lrun::rendezvous
