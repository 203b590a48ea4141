// From phase to phase: recover, end a generation, close the job.
#include <algorithm>
#include <set>
#include <utility>

#include "rendezvous/machine.h"

namespace lrun::rendezvous {
namespace {

std::string spent_budget(int max_restarts) {
  if (max_restarts == 0) return "a worker failed and no restart is allowed";
  if (max_restarts == 1) return "a worker failed and the only restart is spent";
  return "a worker failed and all " + std::to_string(max_restarts) + " restarts are spent";
}

// Sentences come from outside; the rest of a cause has a fixed size.
FirstCause shortened(FirstCause cause) {
  cause.sentence.resize(std::min(cause.sentence.size(), kSentenceBytesMax));
  return cause;
}

}  // namespace

void StateMachine::Impl::enter(Phase next, std::string reason) {
  actions.push_back(PhaseChanged{phase, next, std::move(reason)});
  phase = next;
}

bool StateMachine::Impl::is_participant(const Member& member) const {
  return member.role == Role::Participant || member.role == Role::Finished;
}

// --- Recovering ---

void StateMachine::Impl::settle_recovering(Instant now) {
  if (has_everybody_reported()) return resume(now);
  if (now < recover_until) return;
  const bool was_running = !is_none(current);
  stop_recovering(now, was_running ? GenerationReason::NodeLost : GenerationReason::Start,
                  was_running ? RejoinReason::NodeLost : RejoinReason::Unknown,
                  was_running ? "not every node of generation " + to_string(current) + " reported"
                              : "no node reported a running group");
}

bool StateMachine::Impl::has_everybody_reported() const {
  std::set<GroupRank> reported;
  std::size_t expected = 1;
  for (const auto& [node, member] : members.all()) {
    if (!is_participant(member)) continue;
    reported.insert(member.assignment->group_rank);
    expected = static_cast<std::size_t>(std::max(1, member.assignment->group_world_size));
  }
  return reported.size() == expected;
}

void StateMachine::Impl::collect_places() {
  places.clear();
  for (const auto& [node, member] : members.all()) {
    if (is_participant(member)) places[node] = member.assignment->group_rank;
  }
}

// The same generation goes on as if nothing had happened.
void StateMachine::Impl::resume(Instant now) {
  collect_places();
  for (auto& [node, member] : members.all()) {
    if (member.is_ready) member.role = Role::Spare;
    if (!is_participant(member)) continue;
    world_size = member.assignment->world_size;
    ending.reason = member.assignment->reason;
    member.assigned_at = now;
  }
  published_at = now;
  budget.begin(current, now);
  blackboard.open(current, actions);
  enter(Phase::Active, "generation " + to_string(current) + " was reported by all of its nodes");
  replay_deferred(now);
}

void StateMachine::Impl::stop_recovering(Instant now, GenerationReason reason, RejoinReason rejoin,
                                         const std::string& why) {
  collect_places();
  ending = {reason, rejoin, now};
  lost_participant = false;
  is_gathering = !is_none(current);
  enter(Phase::Forming, why);
  replay_deferred(now);
}

void StateMachine::Impl::replay_deferred(Instant now) {
  for (const Event& call : std::exchange(deferred, {})) react_to_event(now, call);
}

// --- Active ---

void StateMachine::Impl::settle_active(Instant now) {
  if (has_everybody_finished()) {
    return close(now, Outcome::Succeeded, std::nullopt, "all workers have finished");
  }
  const auto growth = growth_at();
  if (!growth || *growth > now) return;
  end_generation(now, GenerationReason::NodeJoined, RejoinReason::NodeJoined,
                 "there is room for a newcomer");
}

bool StateMachine::Impl::has_everybody_finished() const {
  return !places.empty() && std::all_of(places.begin(), places.end(), [&](const auto& place) {
    const auto found = members.all().find(place.first);
    return found != members.all().end() && found->second.role == Role::Finished;
  });
}

// When the group ends to take in nodes that wait. A group that is about to finish stays as it is.
std::optional<Instant> StateMachine::Impl::growth_at() const {
  if (has_finished_member || std::cmp_less_equal(config.max_nodes, places.size())) {
    return std::nullopt;
  }
  for (const auto& [node, member] : members.all()) {
    const bool is_newcomer = member.is_candidate() && !member.is_in_grace();
    if (is_newcomer && !is_participant(member)) return published_at + config.grow_cooldown;
  }
  return std::nullopt;
}

void StateMachine::Impl::end_generation(Instant now, GenerationReason reason, RejoinReason rejoin,
                                        const std::string& why) {
  ending = {reason, rejoin, now};
  lost_participant = reason == GenerationReason::NodeLost;
  awaits_culprit = false;
  for (auto& [node, member] : members.all()) {
    if (member.role == Role::Spare) member.role = Role::Waiting;
  }
  enter(Phase::Forming, why);
}

// --- failures ---

void StateMachine::Impl::fail_generation(Instant now, const FirstCause& cause) {
  const std::string where = "node " + cause.node.value;
  if (!is_charged(cause.kind)) {
    return end_generation(now, GenerationReason::NodeLost, RejoinReason::GenerationEnded,
                          where + " starts again");
  }
  const bool is_stall = cause.kind == FailureKind::Stalled;
  end_generation(now, is_stall ? GenerationReason::Stalled : GenerationReason::WorkerFailed,
                 RejoinReason::WorkerFailed, "a worker failed on " + where);
  expect_charge(cause);
}

void StateMachine::Impl::expect_charge(const FirstCause& cause) {
  if (is_charged(cause.kind)) pending_failure = shortened(cause);
}

// The failure is charged once it is clear that no node was lost with it: workers that lose a peer
// fail too, and that is not their fault.
void StateMachine::Impl::settle_failure(Instant now) {
  if (!pending_failure) return;
  if (lost_participant) {
    pending_failure.reset();
    ending.reason = GenerationReason::NodeLost;
    return;
  }
  for (const auto& [node, member] : members.all()) {
    const bool has_run = places.count(node) > 0 && member.role != Role::Finished;
    if (has_run && members.is_in_doubt(member, now)) return;
  }
  const FirstCause cause = *std::exchange(pending_failure, std::nullopt);
  last_cause = cause;
  if (budget.charge(current, cause.kind, now)) {
    actions.push_back(RestartCharged{budget.restarts_spent(), cause});
    return;
  }
  close(now, Outcome::Failed, cause, spent_budget(config.max_restarts));
}

// --- departures and the end ---

void StateMachine::Impl::depart(Instant now, NodeId node, Evidence evidence) {
  const Member member = *members.find(node);
  members.remove(node);
  if (!member.is_stranger) actions.push_back(NodeDeparted{node, evidence});
  if (member.join) actions.push_back(AnswerJoin{member.join->ticket, AskAgain{}});
  if (member.watch) actions.push_back(AnswerWatch{member.watch->ticket, AskAgain{}});
  const bool is_drain = evidence == Evidence::Drained;
  if (is_drain) incarnations.retire(node, member.facts.incarnation);
  if (phase == Phase::Active && member.role == Role::Finished) {
    places.erase(node);
  } else if (phase == Phase::Active && member.role == Role::Participant) {
    end_generation(now, is_drain ? GenerationReason::Drained : GenerationReason::NodeLost,
                   is_drain ? RejoinReason::NodeDrained : RejoinReason::NodeLost,
                   "node " + node.value + " is " + to_string(evidence));
  } else if (has_group_ended() && places.count(node) > 0 && !is_drain &&
             member.role != Role::Finished) {
    lost_participant = true;
  }
}

void StateMachine::Impl::close(Instant now, Outcome with, std::optional<FirstCause> cause,
                               const std::string& why) {
  if (cause) cause = shortened(*std::move(cause));
  outcome = with;
  closing_cause = cause;
  if (cause) last_cause = cause;
  enter(Phase::Closed, why);
  const Refusal refusal = closed(config, with);
  for (auto& [node, member] : members.all()) {
    if (!member.join) continue;
    actions.push_back(AnswerJoin{member.join->ticket, refusal});
    member.join.reset();
  }
  blackboard.close(refusal, actions);
  replay_deferred(now);
  actions.push_back(JobClosed{with, std::move(cause)});
}

std::string to_string(Evidence evidence) {
  switch (evidence) {
    case Evidence::Gone:
      return "gone";
    case Evidence::Silent:
      return "silent";
    case Evidence::Left:
      return "leaving";
    case Evidence::Drained:
      return "drained";
  }
  return "lost";
}

}  // namespace lrun::rendezvous
