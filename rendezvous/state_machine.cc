#include "rendezvous/state_machine.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

#include "rendezvous/machine.h"

namespace lrun::rendezvous {
namespace {

void take_earlier(std::optional<Instant>& earliest, std::optional<Instant> candidate) {
  if (!candidate) return;
  earliest = earliest ? std::min(*earliest, *candidate) : *candidate;
}

void answer_due_calls(Member& member, Instant now, std::vector<Action>& actions) {
  if (member.join && member.join->ask_again_at <= now) {
    actions.push_back(AnswerJoin{member.join->ticket, AskAgain{}});
    member.join.reset();
    member.asked_again_at = now;
  }
  if (member.watch && member.watch->ask_again_at <= now) {
    actions.push_back(AnswerWatch{member.watch->ticket, AskAgain{}});
    member.watch.reset();
  }
}

}  // namespace

StateMachine::Impl::Impl(Config configured, std::uint64_t first_term, Instant now)
    : config(std::move(configured)),
      term(first_term),
      phase(config.may_have_predecessor ? Phase::Recovering : Phase::Forming),
      ending{.at = now},
      enough_since(now),
      published_at(now),
      recover_until(now + config.lease),
      stepped_at(now),
      members(config),
      budget(config.max_restarts) {}

// The event comes first: a node that is just heard is not judged by the silence before.
void StateMachine::Impl::react_to_event(Instant now, const Event& event) {
  std::visit([&](const auto& happened) { react(now, happened); }, event);
}

void StateMachine::Impl::pass_time(Instant now) {
  blackboard.pass_time(now, actions);
  judge_members(now);
  refuse_late_joins(now);
  for (auto& [node, member] : members.all()) answer_due_calls(member, now, actions);
}

// A participant whose workers have ended well is not missed until its group ends.
bool StateMachine::Impl::counts_leases(const Member& member) const {
  return member.role != Role::Finished || phase != Phase::Active;
}

// A departure may end the group, and with it the patience for those who have finished: they are
// judged in the same step.
void StateMachine::Impl::judge_members(Instant now) {
  Phase judged = phase;
  do {
    judged = phase;
    std::vector<std::pair<NodeId, Evidence>> departing;
    for (auto& [node, member] : members.all()) {
      if (!counts_leases(member)) continue;
      if (const auto evidence = members.judge(member, now)) departing.push_back({node, *evidence});
    }
    for (const auto& [node, evidence] : departing) depart(now, node, evidence);
  } while (phase != judged);
}

// While no group runs, nobody waits for one longer than the join time-out.
Instant StateMachine::Impl::join_timeout_at(const Member& member) const {
  Instant since = std::max(member.waits_since, ending.at);
  if (const auto retry_at = budget.retry_at()) since = std::max(since, *retry_at);
  return since + config.join_timeout;
}

void StateMachine::Impl::refuse_late_joins(Instant now) {
  if (phase == Phase::Active || phase == Phase::Closed) return;
  std::vector<NodeId> late;
  for (const auto& [node, member] : members.all()) {
    if (member.is_ready && member.join && join_timeout_at(member) <= now) late.push_back(node);
  }
  if (late.empty()) return;
  const Refusal refusal = join_timed_out(config, nodes_that_came(now));
  std::erase_if(timed_out, [&](const auto& entry) {
    return now - entry.second >= config.join_timeout || timed_out.size() >= kNodesMax;
  });
  for (const NodeId& node : late) {
    Member& member = *members.find(node);
    actions.push_back(AnswerJoin{member.join->ticket, refusal});
    member.join.reset();
    timed_out[node] = now;
    refuse(node, refusal);
    depart(now, node, Evidence::Left);
  }
}

// What follows from the state as it is now. Each phase may lead to the next one at once, and none
// back to one that was settled before, so the loop ends. With the phase it may change whose lease
// counts, so members are judged again.
void StateMachine::Impl::settle(Instant now) {
  Phase settled = phase;
  do {
    settled = phase;
    switch (phase) {
      case Phase::Recovering:
        settle_recovering(now);
        break;
      case Phase::Forming:
      case Phase::LastCall:
        settle_forming(now);
        break;
      case Phase::Active:
        settle_active(now);
        break;
      case Phase::Closed:
        break;
    }
    if (phase != settled) judge_members(now);
  } while (phase != settled);
  answer_watches();
}

std::optional<Instant> StateMachine::Impl::next_deadline() const {
  const bool is_waiting_timed = phase != Phase::Active && phase != Phase::Closed;
  std::optional<Instant> earliest = blackboard.next_deadline();
  for (const auto& [node, member] : members.all()) {
    if (counts_leases(member)) take_earlier(earliest, members.departs_at(member));
    if (member.join) take_earlier(earliest, member.join->ask_again_at);
    if (member.watch) take_earlier(earliest, member.watch->ask_again_at);
    if (member.join && member.is_ready && is_waiting_timed) {
      take_earlier(earliest, join_timeout_at(member));
    }
  }
  if (phase == Phase::Recovering) take_earlier(earliest, recover_until);
  if (phase == Phase::Active) take_earlier(earliest, growth_at());
  if (has_group_ended()) take_earlier(earliest, publish_due());
  return earliest;
}

StateMachine::StateMachine(Config config, std::uint64_t term, Instant now)
    : impl_(std::make_unique<Impl>(std::move(config), term, now)) {}
StateMachine::~StateMachine() = default;
StateMachine::StateMachine(StateMachine&&) noexcept = default;
StateMachine& StateMachine::operator=(StateMachine&&) noexcept = default;

std::vector<Action> StateMachine::step(Instant now, const Event& event) {
  assert(now >= impl_->stepped_at);
  impl_->stepped_at = now;
  impl_->react_to_event(now, event);
  impl_->pass_time(now);
  impl_->settle(now);
  return std::exchange(impl_->actions, {});
}

std::optional<Instant> StateMachine::next_deadline() const { return impl_->next_deadline(); }

Status StateMachine::status(Instant now) const { return impl_->status(now); }

}  // namespace lrun::rendezvous
