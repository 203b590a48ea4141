// Who is listened to: one living incarnation per node, one node per fixed rank, one run.
#include <algorithm>
#include <utility>

#include "rendezvous/machine.h"
#include "rendezvous/natural_order.h"

namespace lrun::rendezvous {

void StateMachine::Impl::refuse(const NodeId& node, const Refusal& refusal) {
  actions.push_back(CallRefused{node, refusal});
}

std::optional<Refusal> StateMachine::Impl::refusal_for_join(Instant now,
                                                            const JoinRequest& request) const {
  auto refusal = check_run(request.run_id, config);
  if (!refusal) refusal = check_generation(request.last_seen);
  if (!refusal) refusal = refusal_for_caller(now, request.facts);
  if (!refusal && phase == Phase::Closed) refusal = closed(config, *outcome);
  if (!refusal) refusal = refusal_for_rank(now, request.facts);
  return refusal;
}

std::optional<Refusal> StateMachine::Impl::refusal_for_heartbeat(
    Instant now, const HeartbeatRequest& request) const {
  auto refusal = check_run(request.run_id, config);
  if (!refusal && request.running) refusal = check_generation(request.running->generation);
  if (!refusal) refusal = refusal_for_caller(now, request.facts);
  return refusal;
}

std::optional<Refusal> StateMachine::Impl::refusal_for_caller(Instant now,
                                                              const NodeFacts& facts) const {
  const Member* member = members.find(facts.node);
  if (member && member->facts.incarnation == facts.incarnation) return check(facts, config);
  if (incarnations.is_superseded(facts.node, facts.incarnation)) return superseded(facts.node);
  if (incarnations.has_left(facts.node, facts.incarnation)) return has_left(facts.node);
  if (member && !members.is_replaceable(*member, now)) {
    return duplicate_node(facts.node, member->facts.incarnation, facts.incarnation);
  }
  if (!member && members.all().size() >= kNodesMax) return too_many_nodes();
  return check(facts, config);
}

const Member* StateMachine::Impl::holder_of_rank(const NodeFacts& facts) const {
  if (!facts.fixed_rank) return nullptr;
  for (const auto& [node, member] : members.all()) {
    if (node != facts.node && member.facts.fixed_rank == facts.fixed_rank) return &member;
  }
  return nullptr;
}

std::optional<Refusal> StateMachine::Impl::refusal_for_rank(Instant now,
                                                            const NodeFacts& facts) const {
  const Member* holder = holder_of_rank(facts);
  if (!holder || members.is_replaceable(*holder, now)) return std::nullopt;
  return duplicate_rank(*facts.fixed_rank, holder->facts.node, facts.node);
}

// Requires that the holder, if there is one, may be replaced.
void StateMachine::Impl::release_rank(Instant now, const NodeFacts& facts) {
  if (const Member* holder = holder_of_rank(facts)) {
    depart(now, holder->facts.node, Evidence::Gone);
  }
}

Member& StateMachine::Impl::admit(Instant now, const NodeFacts& facts) {
  Member* member = members.find(facts.node);
  if (member && member->facts.incarnation == facts.incarnation) {
    members.renew(*member, now);
    return *member;
  }
  if (member) depart(now, facts.node, Evidence::Gone);
  incarnations.admit(facts.node, facts.incarnation);
  return members.add(facts, now);
}

std::vector<NodeId> StateMachine::Impl::known_nodes() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, member] : members.all()) {
    if (!member.is_stranger) nodes.push_back(node);
  }
  return nodes;
}

// Who waits, and who has just given up waiting: nodes that came together give up one by one, and
// each is told of all.
std::vector<NodeId> StateMachine::Impl::nodes_that_came(Instant now) const {
  std::vector<NodeId> nodes;
  for (const auto& [node, member] : members.all()) {
    if (member.is_ready) nodes.push_back(node);
  }
  for (const auto& [node, left_at] : timed_out) {
    const Member* member = members.find(node);
    const bool is_counted = member && member->is_ready;
    if (!is_counted && now - left_at < config.join_timeout) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeId& left, const NodeId& right) {
    return natural_less(left.value, right.value);
  });
  return nodes;
}

// A newer generation than ours is known: of another life of the service. Ours will be newer still.
void StateMachine::Impl::hear_generation(Instant now, Generation heard) {
  if (heard <= current) return;
  if (heard.term >= term) term = heard.term + 1;
  if (phase == Phase::Recovering) {
    current = heard;
    for (auto& [node, member] : members.all()) member.role = Role::Waiting;
  } else if (phase == Phase::Active) {
    end_generation(now, GenerationReason::NodeLost, RejoinReason::Unknown,
                   "newer generation " + to_string(heard) + " is known");
  }
}

}  // namespace lrun::rendezvous
