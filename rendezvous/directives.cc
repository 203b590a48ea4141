// What each node is told: in every reply to a heartbeat, and once by its held Watch.
#include "rendezvous/machine.h"

namespace lrun::rendezvous {
namespace {

// An answer may have been on its way while the node sent this heartbeat: for so long a node is not
// told to join again only because it does not know yet what it was answered.
bool is_within_crossing(Instant now, std::optional<Instant> answered_at, Duration interval) {
  return answered_at && now - *answered_at < 2 * interval;
}

}  // namespace

Directive StateMachine::Impl::directive_for_heartbeat(
    Instant now, const Member& member, const std::optional<Assignment>& running) const {
  const Directive told = directive_for_watch(member);
  if (told != Directive{Continue{}} || phase == Phase::Recovering) return told;
  const Duration interval = members.heartbeat_interval();
  if (phase == Phase::Active && is_participant(member)) {
    if (running && running->generation == current) return Continue{};
    if (is_within_crossing(now, member.assigned_at, interval)) return Continue{};
    return Rejoin{RejoinReason::Unknown, running ? running->generation : Generation{}};
  }
  if (member.join) return Continue{};
  if (member.is_ready && is_within_crossing(now, member.asked_again_at, interval))
    return Continue{};
  return Rejoin{RejoinReason::Unknown, running ? running->generation : Generation{}};
}

Directive StateMachine::Impl::directive_for_watch(const Member& member) const {
  if (phase == Phase::Closed) return StopJob{*outcome, closing_cause};
  if (member.is_draining) return DrainNode{};
  if (has_group_ended() && is_participant(member)) return Rejoin{ending.rejoin, current};
  const bool was_left_out = phase == Phase::Active && member.role == Role::Waiting &&
                            !member.is_ready && member.assignment.has_value();
  if (was_left_out) return Rejoin{RejoinReason::GenerationEnded, current};
  return Continue{};
}

// Each order is said once by Watch, so that a node which is busy obeying can watch again; were the
// answer lost, the next heartbeat repeats it.
void StateMachine::Impl::answer_watches() {
  for (auto& [node, member] : members.all()) {
    if (!member.watch) continue;
    const Directive directive = directive_for_watch(member);
    if (directive == Directive{Continue{}} || member.told == directive) continue;
    actions.push_back(AnswerWatch{member.watch->ticket, directive});
    member.watch.reset();
    member.told = directive;
  }
}

}  // namespace lrun::rendezvous
