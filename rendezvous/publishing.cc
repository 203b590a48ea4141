// How a group comes together: who is counted, when it is published, and who gets which place.
#include <utility>

#include "rendezvous/machine.h"
#include "rendezvous/rank_order.h"

namespace lrun::rendezvous {
namespace {

std::string progress_of(const Formation& formation, const Config& config) {
  return std::to_string(formation.candidates) + " of " + std::to_string(config.min_nodes) + " to " +
         std::to_string(config.max_nodes) + " nodes wait";
}

}  // namespace

void StateMachine::Impl::settle_forming(Instant now) {
  settle_failure(now);
  if (phase == Phase::Closed) return;
  if (has_everybody_finished()) {
    return close(now, Outcome::Succeeded, std::nullopt, "all workers have finished");
  }
  const Formation counted = formation();
  if (counted.candidates < config.min_nodes) {
    if (phase == Phase::LastCall) enter(Phase::Forming, progress_of(counted, config));
    return;
  }
  if (phase == Phase::Forming) enough_since = now;
  const auto due = publish_due();
  if (due && *due <= now) return publish(now);
  if (phase == Phase::Forming) enter(Phase::LastCall, progress_of(counted, config));
}

Formation StateMachine::Impl::formation() const {
  Formation counted{
      .ended_at = ending.at, .enough_since = enough_since, .retry_at = budget.retry_at()};
  if (is_gathering) {
    counted.has_survivors = true;
    counted.gathering_until = recover_until;
  }
  for (const auto& [node, member] : members.all()) {
    if (member.is_draining) continue;
    if (member.is_ready) ++counted.candidates;
    if (places.count(node) == 0) continue;
    counted.has_survivors = true;
    if (!member.is_ready) ++counted.absent_survivors;
  }
  return counted;
}

std::optional<Instant> StateMachine::Impl::publish_due() const {
  if (pending_failure) return std::nullopt;
  for (const auto& [node, member] : members.all()) {
    const bool matters = member.is_candidate() || places.count(node) > 0;
    if (matters && member.is_in_grace()) return std::nullopt;
  }
  return publish_at(formation(), config);
}

std::vector<Candidate> StateMachine::Impl::candidates() const {
  std::vector<Candidate> found;
  for (const auto& [node, member] : members.all()) {
    if (!member.is_candidate()) continue;
    const auto place = places.find(node);
    found.push_back(
        {.facts = member.facts,
         .previous = place == places.end() ? std::nullopt : std::optional(place->second),
         .waits_since = member.waits_since});
  }
  return found;
}

// One step: the generation, its places, and an answer to every ticket that waited for it.
void StateMachine::Impl::publish(Instant now) {
  const auto chosen = order_by_group_rank(choose_participants(candidates(), config.max_nodes));
  const auto assignments = assign(chosen, {.generation = {term, ++number},
                                           .reason = ending.reason,
                                           .restarts_spent = budget.restarts_spent()});
  current = assignments.front().generation;
  world_size = assignments.front().world_size;
  actions.push_back(GenerationPublished{current, ending.reason, static_cast<int>(chosen.size()),
                                        world_size, now - ending.at});
  places.clear();
  for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
    seat(now, chosen[rank].facts.node, assignments[rank]);
  }
  unseat_others();
  published_at = now;
  has_finished_member = false;
  is_gathering = false;
  budget.begin(current, now);
  blackboard.open(current, actions);
  enter(Phase::Active, "generation " + to_string(current) + " is published");
}

void StateMachine::Impl::seat(Instant now, const NodeId& node, const Assignment& assignment) {
  Member& member = *members.find(node);
  places[node] = assignment.group_rank;
  member.role = Role::Participant;
  member.is_ready = false;
  member.assignment = assignment;
  member.assigned_at = now;
  member.told.reset();
  member.progress = {};
  if (!member.join) return;  // between two Joins: the next one is answered with it
  actions.push_back(AnswerJoin{member.join->ticket, assignment});
  member.join.reset();
}

void StateMachine::Impl::unseat_others() {
  for (auto& [node, member] : members.all()) {
    if (places.count(node) > 0) continue;
    member.role = member.is_ready ? Role::Spare : Role::Waiting;
  }
}

}  // namespace lrun::rendezvous
