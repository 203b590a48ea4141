// The status of a whole job, both ways.
#include "proto/rendezvous.pb.h"
#include "rendezvous/convert.h"
#include "rendezvous/convert_nouns.h"
#include "rendezvous/wire_limits.h"

namespace lrun::rendezvous {
namespace {

void write(const Config& config, v1::Config& wire) {
  wire.set_run_id(config.run_id);
  wire.set_min_nodes(config.min_nodes);
  wire.set_max_nodes(config.max_nodes);
  wire.set_max_restarts(config.max_restarts);
  rendezvous::write(config.heartbeat, *wire.mutable_heartbeat());
  rendezvous::write(config.lease, *wire.mutable_lease());
  rendezvous::write(config.gone_grace, *wire.mutable_gone_grace());
  rendezvous::write(config.last_call, *wire.mutable_last_call());
  rendezvous::write(config.kill_grace, *wire.mutable_kill_grace());
  rendezvous::write(config.join_timeout, *wire.mutable_join_timeout());
  rendezvous::write(config.grow_cooldown, *wire.mutable_grow_cooldown());
  rendezvous::write(config.hold, *wire.mutable_hold());
  wire.set_may_have_predecessor(config.may_have_predecessor);
}

Config read(Limits& limits, const v1::Config& wire) {
  Config config;
  config.run_id = limits.text("config.run_id", wire.run_id(), kRunIdBytesMax);
  config.min_nodes = limits.number("config.min_nodes", wire.min_nodes(), 1, kNodesMax);
  config.max_nodes = limits.number("config.max_nodes", wire.max_nodes(), 1, kNodesMax);
  config.max_restarts = limits.number("config.max_restarts", wire.max_restarts(), 0, kRestartsMax);
  config.heartbeat = rendezvous::read(limits, "config.heartbeat", wire.heartbeat());
  config.lease = rendezvous::read(limits, "config.lease", wire.lease());
  config.gone_grace = rendezvous::read(limits, "config.gone_grace", wire.gone_grace());
  config.last_call = rendezvous::read(limits, "config.last_call", wire.last_call());
  config.kill_grace = rendezvous::read(limits, "config.kill_grace", wire.kill_grace());
  config.join_timeout = rendezvous::read(limits, "config.join_timeout", wire.join_timeout());
  config.grow_cooldown = rendezvous::read(limits, "config.grow_cooldown", wire.grow_cooldown());
  config.hold = rendezvous::read(limits, "config.hold", wire.hold());
  config.may_have_predecessor = wire.may_have_predecessor();
  return config;
}

void write(const NodeStatus& node, v1::NodeStatus& wire) {
  rendezvous::write(node.facts, *wire.mutable_facts());
  wire.set_role(wire_enumerator<v1::Role>(node.role));
  wire.set_draining(node.draining);
  if (node.assignment) rendezvous::write(*node.assignment, *wire.mutable_assignment());
  wire.set_state(wire_enumerator<v1::AgentState>(node.state));
  rendezvous::write(node.progress, *wire.mutable_progress());
  // A lease that has just ended is shown as none left.
  rendezvous::write(std::max(node.lease_left, Duration{}), *wire.mutable_lease_left());
  wire.set_is_ready(node.is_ready);
}

NodeStatus read(Limits& limits, const v1::NodeStatus& wire) {
  NodeStatus node;
  node.facts = rendezvous::read(limits, wire.facts());
  node.role = limits.enumerator("nodes.role", wire.role(), Role::Finished);
  node.draining = wire.draining();
  if (wire.has_assignment()) node.assignment = rendezvous::read(limits, wire.assignment());
  node.state = limits.enumerator("nodes.state", wire.state(), AgentState::Done);
  node.progress = rendezvous::read(limits, wire.progress());
  node.lease_left = rendezvous::read(limits, "nodes.lease_left", wire.lease_left());
  node.is_ready = wire.is_ready();
  return node;
}

}  // namespace

void write(const Status& status, v1::GetStatusReply& wire) {
  write(status.config, *wire.mutable_config());
  wire.set_phase(wire_enumerator<v1::Phase>(status.phase));
  write(status.generation, *wire.mutable_generation());
  wire.set_reason(wire_enumerator<v1::GenerationReason>(status.reason));
  wire.set_world_size(status.world_size);
  wire.set_restarts_spent(status.restarts_spent);
  for (const auto& [kind, restarts] : status.restarts_by_kind) {
    v1::RestartCount& count = *wire.add_restarts_by_kind();
    count.set_kind(wire_enumerator<v1::FailureKind>(kind));
    count.set_restarts(restarts);
  }
  for (const NodeStatus& node : status.nodes) write(node, *wire.add_nodes());
  if (status.outcome) wire.set_outcome(wire_enumerator<v1::Outcome>(*status.outcome));
  if (status.cause) write(*status.cause, *wire.mutable_cause());
}

Converted<Status> read(const v1::GetStatusReply& wire) {
  Limits limits;
  Status status;
  status.config = read(limits, wire.config());
  status.phase = limits.enumerator("phase", wire.phase(), Phase::Closed);
  status.generation = read(wire.generation());
  status.reason = limits.enumerator("reason", wire.reason(), GenerationReason::Stalled);
  status.world_size = limits.number("world_size", wire.world_size(), 0, kNodesMax * kSlotsMax);
  status.restarts_spent = limits.number("restarts_spent", wire.restarts_spent(), 0, kRestartsMax);
  for (const v1::RestartCount& count : wire.restarts_by_kind()) {
    status.restarts_by_kind[limits.enumerator("restarts_by_kind.kind", count.kind(),
                                              FailureKind::Refused)] = count.restarts();
  }
  limits.require(wire.nodes_size() <= kNodesMax, "nodes",
                 "a list of at most " + std::to_string(kNodesMax));
  for (const v1::NodeStatus& node : wire.nodes()) {
    if (limits.refusal()) break;
    status.nodes.push_back(read(limits, node));
  }
  if (wire.outcome() != v1::OUTCOME_UNSET) {
    status.outcome = limits.enumerator("outcome", wire.outcome(), Outcome::NoProgress);
  }
  if (wire.has_cause()) status.cause = read(limits, wire.cause());
  if (!limits.refusal()) return status;
  return Refusal{
      RefuseReason::BadRequest,
      "the service sent a status that this lrun cannot read: " + limits.refusal()->sentence};
}

}  // namespace lrun::rendezvous
