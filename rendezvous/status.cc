// What people see of the rendezvous.
#include <algorithm>

#include "rendezvous/machine.h"
#include "rendezvous/natural_order.h"

namespace lrun::rendezvous {
namespace {

// Participants by group rank, then the others by name.
bool is_listed_before(const NodeStatus& left, const NodeStatus& right) {
  const bool left_is_in = left.role == Role::Participant || left.role == Role::Finished;
  const bool right_is_in = right.role == Role::Participant || right.role == Role::Finished;
  if (left_is_in != right_is_in) return left_is_in;
  if (left_is_in && left.assignment && right.assignment &&
      left.assignment->group_rank != right.assignment->group_rank) {
    return left.assignment->group_rank < right.assignment->group_rank;
  }
  return natural_less(left.facts.node.value, right.facts.node.value);
}

NodeStatus describe(const Member& member, Instant now) {
  return {.facts = member.facts,
          .role = member.role,
          .draining = member.is_draining,
          .assignment = member.assignment,
          .state = member.state,
          .progress = member.progress,
          .lease_left = std::max(member.lease_end - now, Duration::zero()),
          .is_ready = member.is_ready,
          .knows_end = member.told && std::holds_alternative<StopJob>(*member.told)};
}

}  // namespace

Status StateMachine::Impl::status(Instant now) const {
  Status status{.config = config,
                .phase = phase,
                .generation = current,
                .reason = ending.reason,
                .world_size = world_size,
                .restarts_spent = budget.restarts_spent(),
                .restarts_by_kind = budget.by_kind(),
                .nodes = {},
                .outcome = outcome,
                .cause = last_cause};
  for (const auto& [node, member] : members.all()) {
    if (!member.is_stranger) status.nodes.push_back(describe(member, now));
  }
  std::sort(status.nodes.begin(), status.nodes.end(), is_listed_before);
  return status;
}

bool is_full(const Status& status) {
  if (status.phase == Phase::Closed) return true;
  const auto taken = std::count_if(status.nodes.begin(), status.nodes.end(), [](const auto& node) {
    return node.is_ready || node.role == Role::Participant || node.role == Role::Finished;
  });
  return taken >= status.config.max_nodes;
}

}  // namespace lrun::rendezvous
