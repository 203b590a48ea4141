// Reactions to what agents and people say. They change what is known of nodes; what follows for the
// group is decided when the step settles.
#include <algorithm>
#include <utility>

#include "rendezvous/machine.h"

namespace lrun::rendezvous {
namespace {

// Calls that wait until Recovering is over; the bound of the blackboard itself.
constexpr std::size_t kDeferredMax = kWaitingLookupsMax;
constexpr int kRestartsHeardMax = 1'000'000;

Ticket ticket_of(const Event& event) {
  if (const auto* publish = std::get_if<PublishReceived>(&event)) return publish->ticket;
  if (const auto* lookup = std::get_if<LookupReceived>(&event)) return lookup->ticket;
  return Ticket{};
}

}  // namespace

void StateMachine::Impl::react(Instant now, const JoinReceived& event) {
  const JoinRequest& request = event.request;
  if (const auto refusal = refusal_for_join(now, request)) {
    actions.push_back(AnswerJoin{event.ticket, *refusal});
    return refuse(request.facts.node, *refusal);
  }
  budget.hear(std::min(request.restarts_spent, kRestartsHeardMax));
  release_rank(now, request.facts);
  admit(now, request.facts).facts = request.facts;
  hear_generation(now, request.last_seen);
  if (answer_again(now, event)) return;
  if (!is_none(request.last_seen) && request.last_seen == current) {
    hear_end(now, request);
  }
  hold_join(now, *members.find(request.facts.node), event.ticket);
}

// The agent ran the current generation and wants another one.
void StateMachine::Impl::hear_end(Instant now, const JoinRequest& request) {
  const std::string why = "node " + request.facts.node.value + " joins again";
  if (phase == Phase::Recovering) {
    stop_recovering(now, GenerationReason::NodeLost, RejoinReason::GenerationEnded, why);
    if (request.failure) expect_charge(*request.failure);
  } else if (phase == Phase::Active && is_participant(*members.find(request.facts.node))) {
    if (request.failure) return fail_generation(now, *request.failure);
    end_generation(now, GenerationReason::NodeLost, RejoinReason::GenerationEnded, why);
    // Nobody is lost: this node's workers are victims of something that is still to be heard of.
    lost_participant = false;
    awaits_culprit = true;
  } else if (has_group_ended() && awaits_culprit && request.failure &&
             places.count(request.facts.node) > 0) {
    hear_culprit(*request.failure);
  }
}

// The victims' node was quicker than the one whose worker failed.
void StateMachine::Impl::hear_culprit(const FirstCause& cause) {
  if (!is_charged(cause.kind)) return;
  awaits_culprit = false;
  ending.reason = cause.kind == FailureKind::Stalled ? GenerationReason::Stalled
                                                     : GenerationReason::WorkerFailed;
  expect_charge(cause);
}

// "My answer was lost": the same assignment once more.
bool StateMachine::Impl::answer_again(Instant now, const JoinReceived& event) {
  Member& member = *members.find(event.request.facts.node);
  const bool was_lost = phase == Phase::Active && is_participant(member) && member.assignment &&
                        event.request.last_seen < current;
  if (!was_lost) return false;
  actions.push_back(AnswerJoin{event.ticket, *member.assignment});
  member.assigned_at = now;
  return true;
}

void StateMachine::Impl::hold_join(Instant now, Member& member, Ticket ticket) {
  if (member.join) actions.push_back(AnswerJoin{member.join->ticket, AskAgain{}});
  member.join = HeldCall{ticket, now + config.hold};
  member.asked_again_at.reset();
  if (member.is_ready) return;
  const bool is_spare =
      phase == Phase::Active && std::cmp_less_equal(config.max_nodes, places.size());
  member.is_ready = true;
  member.is_stranger = false;
  member.waits_since = now;
  member.told.reset();
  member.role = phase == Phase::Active ? Role::Spare : Role::Waiting;
  actions.push_back(NodeJoined{member.facts.node, is_spare ? "spare" : "waiting"});
}

void StateMachine::Impl::react(Instant now, const HeartbeatReceived& event) {
  const HeartbeatRequest& request = event.request;
  if (const auto refusal = refusal_for_heartbeat(now, request)) {
    actions.push_back(AnswerHeartbeat{event.ticket, *refusal});
    return refuse(request.facts.node, *refusal);
  }
  budget.hear(std::min(request.restarts_spent, kRestartsHeardMax));
  admit(now, request.facts);
  if (request.running) hear_generation(now, request.running->generation);
  take_in(now, request);
  const Directive directive =
      directive_for_heartbeat(now, *members.find(request.facts.node), request.running);
  actions.push_back(AnswerHeartbeat{
      event.ticket, HeartbeatReply{directive, members.heartbeat_interval(), members.lease()}});
}

void StateMachine::Impl::take_in(Instant now, const HeartbeatRequest& request) {
  Member& member = *members.find(request.facts.node);
  member.state = request.state;
  member.progress = request.progress;
  if (!request.running) return;
  if (phase == Phase::Recovering) take_in_report(member, request);
  if (request.running->generation != current || !is_participant(member)) return;
  budget.note_step(request.progress.step);
  if (request.state == AgentState::Finished) finish(member);
  if (request.failure && phase == Phase::Active) fail_generation(now, *request.failure);
  const bool is_culprit = request.failure && has_group_ended() && awaits_culprit;
  if (is_culprit && places.count(request.facts.node) > 0) hear_culprit(*request.failure);
}

// After a restart of the service: from these reports the generation is rebuilt.
void StateMachine::Impl::take_in_report(Member& member, const HeartbeatRequest& request) {
  if (member.is_ready) return;  // it has joined since: this heartbeat came late
  member.facts = request.facts;
  member.assignment = request.running;
  const bool is_new = member.is_stranger;
  member.is_stranger = false;
  member.role = request.running->generation == current ? Role::Participant : Role::Waiting;
  if (is_new) actions.push_back(NodeJoined{member.facts.node, "participant"});
}

void StateMachine::Impl::finish(Member& member) {
  member.role = Role::Finished;
  has_finished_member = true;
}

void StateMachine::Impl::react(Instant now, const WatchReceived& event) {
  const WatchRequest& request = event.request;
  NodeFacts facts;
  facts.node = request.node;
  facts.incarnation = request.incarnation;
  auto refusal = check_run(request.run_id, config);
  if (!refusal) refusal = refusal_for_caller(now, facts);
  if (refusal) {
    actions.push_back(AnswerWatch{event.ticket, *refusal});
    return refuse(request.node, *refusal);
  }
  Member& member = admit(now, facts);
  if (member.watch) actions.push_back(AnswerWatch{member.watch->ticket, AskAgain{}});
  member.watch = HeldCall{event.ticket, now + config.hold};
}

void StateMachine::Impl::react(Instant now, const LeaveReceived& event) {
  const LeaveRequest& request = event.request;
  const Member* member = members.find(request.node);
  const bool is_known = member && member->facts.incarnation == request.incarnation;
  auto refusal = check_run(request.run_id, config);
  if (!refusal) refusal = check_generation(request.generation);
  if (!refusal && is_known) refusal = refusal_for_leave(*member, request);
  if (!refusal && incarnations.is_superseded(request.node, request.incarnation)) {
    refusal = superseded(request.node);
  }
  actions.push_back(Acknowledge{event.ticket, refusal});
  if (refusal) return refuse(request.node, *refusal);
  if (is_known && phase != Phase::Closed) leave(now, request);
}

// Only who belongs to the current generation may say how it ended; anybody may go.
std::optional<Refusal> StateMachine::Impl::refusal_for_leave(const Member& member,
                                                             const LeaveRequest& request) const {
  if (request.kind == LeaveKind::Drained || phase == Phase::Closed) return std::nullopt;
  const bool may_speak = is_participant(member) && request.generation == current;
  return may_speak ? std::nullopt : std::optional(stale_leave(request.generation, current));
}

void StateMachine::Impl::leave(Instant now, const LeaveRequest& request) {
  switch (request.kind) {
    case LeaveKind::Succeeded:
      return finish(*members.find(request.node));
    case LeaveKind::Failed:
      return close(now, Outcome::Failed, request.cause, "node " + request.node.value + " gave up");
    case LeaveKind::Drained:
      return depart(now, request.node, Evidence::Drained);
  }
}

void StateMachine::Impl::react(Instant /*now*/, const PublishReceived& event) {
  if (phase != Phase::Recovering) return blackboard.publish(event.ticket, event.request, actions);
  if (deferred.size() < kDeferredMax) return deferred.push_back(event);
  actions.push_back(Acknowledge{event.ticket, too_many_deferred()});
}

void StateMachine::Impl::react(Instant now, const LookupReceived& event) {
  if (phase != Phase::Recovering) {
    return blackboard.lookup(event.ticket, event.request, now + config.hold, actions);
  }
  if (deferred.size() < kDeferredMax) return deferred.push_back(event);
  actions.push_back(AnswerLookup{event.ticket, too_many_deferred()});
}

void StateMachine::Impl::react(Instant /*now*/, const DrainReceived& event) {
  Member* member = members.find(event.node);
  std::optional<Refusal> refusal;
  if (phase == Phase::Closed) {
    refusal = closed(config, *outcome);
  } else if (!member || member->is_stranger) {
    refusal = unknown_node(event.node, known_nodes());
  } else {
    member->is_draining = true;
  }
  actions.push_back(Acknowledge{event.ticket, refusal});
  if (refusal) refuse(event.node, *refusal);
}

void StateMachine::Impl::react(Instant now, const StopReceived& event) {
  actions.push_back(Acknowledge{event.ticket, std::nullopt});
  if (phase == Phase::Closed) return;
  FirstCause cause;
  cause.kind = FailureKind::Interrupted;
  cause.sentence = event.reason;
  close(now, Outcome::Stopped, cause, "stopped on request");
}

void StateMachine::Impl::react(Instant now, const CallEnded& event) {
  if (Member* member = members.find(event.ticket)) {
    return members.end_call(*member, event.ticket, now);
  }
  if (blackboard.forget(event.ticket)) return;
  std::erase_if(deferred, [&](const Event& call) { return ticket_of(call) == event.ticket; });
}

void StateMachine::Impl::react(Instant /*now*/, const LagMeasured& event) {
  members.extend_leases(event.lag);
  recover_until += event.lag;
}

void StateMachine::Impl::react(Instant /*now*/, const TimePassed& /*event*/) {}

}  // namespace lrun::rendezvous
