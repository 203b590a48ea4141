// What time alone brings: deadlines, and the moves that follow when what a state waits for has
// come.
#include <cassert>

#include "agent/supervisor_impl.h"

namespace lrun::agent {
namespace {

// Deadlines that may follow from each other at one instant; more is a loop.
constexpr int kDeadlinesAtOnceMax = 16;

void keep_earlier(std::optional<Instant>& earliest, std::optional<Instant> candidate) {
  if (candidate && (!earliest || *candidate < *earliest)) earliest = candidate;
}

}  // namespace

std::optional<Instant> Supervisor::Impl::fence_deadline() const {
  const bool runs = state == AgentState::Starting || state == AgentState::Running;
  if (!runs || is_fenced) return std::nullopt;
  return contact.fence_at();
}

std::optional<Instant> Supervisor::Impl::give_up_deadline() const {
  switch (state) {
    case AgentState::Joining:
    case AgentState::Backoff:
    case AgentState::Reforming:
    case AgentState::Finished:
      return contact.last_heard() + config.unreachable_timeout;
    case AgentState::Starting:
    case AgentState::Running:
    case AgentState::Stopping:
    case AgentState::Done:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Instant> Supervisor::Impl::next_deadline() const {
  if (!has_started || state == AgentState::Done) return std::nullopt;
  std::optional<Instant> earliest = contact.next_heartbeat();
  keep_earlier(earliest, fence_deadline());
  keep_earlier(earliest, give_up_deadline());
  keep_earlier(earliest, group.next_kill());
  keep_earlier(earliest, verdict_at);
  keep_earlier(earliest, rejoin_at);
  if (state == AgentState::Starting || state == AgentState::Running) {
    keep_earlier(earliest, group.next_stall());
  }
  return earliest;
}

void Supervisor::Impl::pass_deadlines() {
  for (int turn = 0;; ++turn) {
    const std::optional<Instant> due = next_deadline();
    if (!due || *due > now) return;
    assert(turn < kDeadlinesAtOnceMax);
    kill_overdue();
    end_stalled();
    if (verdict_at && *verdict_at <= now) window_ended();
    if (rejoin_at && *rejoin_at <= now) {
      if (state == AgentState::Backoff) set_state(AgentState::Joining, "the backoff is over");
      send_join();
    }
    if (fence_deadline() && *fence_deadline() <= now) lease_lost();
    if (give_up_deadline() && *give_up_deadline() <= now) give_up();
    if (contact.next_heartbeat() <= now && state != AgentState::Done) send_heartbeat();
    settle();
  }
}

void Supervisor::Impl::settle() {
  while (settle_once()) {
  }
}

// Moves on when what a state waits for has come. Ends: each move leads on towards Joining or Done.
bool Supervisor::Impl::settle_once() {
  const AgentState before = state;
  if (state == AgentState::Starting && !group.any_pending()) {
    set_state(AgentState::Running, "every worker has started");
  } else if (state == AgentState::Running && group.all_finished_well()) {
    set_state(AgentState::Finished, "every worker ended well");
    leave(LeaveKind::Succeeded);
  } else if (state == AgentState::Stopping && !group.any_running() && !verdict_at) {
    stopped();
  }
  return state != before;
}

}  // namespace lrun::agent
