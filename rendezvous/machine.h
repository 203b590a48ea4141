// The inside of the rendezvous' state machine: its state, and the steps between events and actions.
//
// Included only by the files that implement it, one room each:
//   state_machine.cc  one step: the event, then what time has brought, then what follows from both
//   admission.cc      who is listened to
//   agent_calls.cc    reactions to what agents and people say
//   phases.cc         from phase to phase: recover, end a generation, close
//   publishing.cc     how a group comes together
//   directives.cc     what each node is told
//   status.cc         what people see
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/blackboard.h"
#include "rendezvous/budget.h"
#include "rendezvous/formation.h"
#include "rendezvous/incarnations.h"
#include "rendezvous/members.h"
#include "rendezvous/rank_order.h"
#include "rendezvous/refusals.h"
#include "rendezvous/state_machine.h"

namespace lrun::rendezvous {

// Why there is no group, or why the current one is not the one before.
struct Ending {
  GenerationReason reason = GenerationReason::Start;
  RejoinReason rejoin = RejoinReason::Unknown;
  Instant at;
};

struct StateMachine::Impl {
  Impl(Config configured, std::uint64_t first_term, Instant now);

  // --- state ---
  Config config;
  std::uint64_t term;
  std::uint64_t number = 0;
  Phase phase;
  // The newest group that was published or rebuilt; in Recovering the newest one reported.
  Generation current;
  int world_size = 0;
  // Group ranks of the current generation, by node. Kept until the next one is published.
  std::map<NodeId, GroupRank> places;
  Ending ending;
  Instant enough_since;  // since when min_nodes wait; meaningful in LastCall
  Instant published_at;
  Instant recover_until;  // the end of Recovering
  // Recovering has ended without the group that ran before: who was in it may not be known.
  bool is_gathering = false;
  Instant stepped_at;  // `now` of the newest step
  // Reported for the current generation, not yet charged: a participant is in doubt, and if it is
  // lost, the failure was the consequence of that.
  std::optional<FirstCause> pending_failure;
  bool lost_participant = false;  // since the current generation ended
  // The current generation ended because a node joined again without a failure of its own.
  bool awaits_culprit = false;
  bool has_finished_member = false;  // in the current generation
  std::optional<FirstCause> last_cause;
  std::optional<FirstCause> closing_cause;
  std::optional<Outcome> outcome;
  Members members;
  Incarnations incarnations;
  Budget budget;
  Blackboard blackboard;
  // Blackboard calls that came in Recovering, when nobody can say yet what is stale.
  std::vector<Event> deferred;
  // Who was refused because the join time-out was over, and when.
  std::map<NodeId, Instant> timed_out;
  // Of the step that is under way.
  std::vector<Action> actions;

  // --- state_machine.cc ---
  void react_to_event(Instant now, const Event& event);
  void pass_time(Instant now);
  void judge_members(Instant now);
  void refuse_late_joins(Instant now);
  void settle(Instant now);
  std::optional<Instant> next_deadline() const;
  bool counts_leases(const Member& member) const;
  Instant join_timeout_at(const Member& member) const;

  // --- agent_calls.cc ---
  void react(Instant now, const JoinReceived& event);
  void react(Instant now, const HeartbeatReceived& event);
  void react(Instant now, const WatchReceived& event);
  void react(Instant now, const LeaveReceived& event);
  void react(Instant now, const PublishReceived& event);
  void react(Instant now, const LookupReceived& event);
  void react(Instant now, const DrainReceived& event);
  void react(Instant now, const StopReceived& event);
  void react(Instant now, const CallEnded& event);
  void react(Instant now, const LagMeasured& event);
  void react(Instant now, const TimePassed& event);
  void hear_end(Instant now, const JoinRequest& request);
  void hear_culprit(const FirstCause& cause);
  bool answer_again(Instant now, const JoinReceived& event);
  void hold_join(Instant now, Member& member, Ticket ticket);
  void take_in(Instant now, const HeartbeatRequest& request);
  void take_in_report(Member& member, const HeartbeatRequest& request);
  void finish(Member& member);
  std::optional<Refusal> refusal_for_leave(const Member& member, const LeaveRequest& request) const;
  void leave(Instant now, const LeaveRequest& request);

  // --- admission.cc ---
  void refuse(const NodeId& node, const Refusal& refusal);
  std::optional<Refusal> refusal_for_join(Instant now, const JoinRequest& request) const;
  std::optional<Refusal> refusal_for_heartbeat(Instant now, const HeartbeatRequest& request) const;
  std::optional<Refusal> refusal_for_caller(Instant now, const NodeFacts& facts) const;
  std::optional<Refusal> refusal_for_rank(Instant now, const NodeFacts& facts) const;
  const Member* holder_of_rank(const NodeFacts& facts) const;
  void release_rank(Instant now, const NodeFacts& facts);
  // The member that says this, new or known. Requires that it was not refused.
  Member& admit(Instant now, const NodeFacts& facts);
  std::vector<NodeId> known_nodes() const;
  std::vector<NodeId> nodes_that_came(Instant now) const;
  void hear_generation(Instant now, Generation heard);

  // --- phases.cc ---
  void enter(Phase next, std::string reason);
  bool is_participant(const Member& member) const;
  bool has_group_ended() const { return phase == Phase::Forming || phase == Phase::LastCall; }
  void settle_recovering(Instant now);
  bool has_everybody_reported() const;
  void collect_places();
  void resume(Instant now);
  void stop_recovering(Instant now, GenerationReason reason, RejoinReason rejoin,
                       const std::string& why);
  void replay_deferred(Instant now);
  void settle_active(Instant now);
  bool has_everybody_finished() const;
  std::optional<Instant> growth_at() const;
  void end_generation(Instant now, GenerationReason reason, RejoinReason rejoin,
                      const std::string& why);
  void fail_generation(Instant now, const FirstCause& cause);
  void expect_charge(const FirstCause& cause);
  void settle_failure(Instant now);
  void depart(Instant now, NodeId node, Evidence evidence);
  void close(Instant now, Outcome with, std::optional<FirstCause> cause, const std::string& why);

  // --- publishing.cc ---
  void settle_forming(Instant now);
  Formation formation() const;
  // None: not enough nodes, or a question is open that only time or a call answers.
  std::optional<Instant> publish_due() const;
  std::vector<Candidate> candidates() const;
  void publish(Instant now);
  void seat(Instant now, const NodeId& node, const Assignment& assignment);
  void unseat_others();

  // --- directives.cc ---
  Directive directive_for_heartbeat(Instant now, const Member& member,
                                    const std::optional<Assignment>& running) const;
  Directive directive_for_watch(const Member& member) const;
  void answer_watches();

  // --- status.cc ---
  Status status(Instant now) const;
};

std::string to_string(Evidence evidence);

}  // namespace lrun::rendezvous
