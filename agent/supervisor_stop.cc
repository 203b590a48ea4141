#include <algorithm>
#include <csignal>

#include "agent/supervisor_impl.h"

namespace lrun::agent {

// --- failures ----------------------------------------------------------------------------------

void Supervisor::Impl::failed(const FirstCause& cause, StopCause reason, Certainty certainty) {
  const bool is_victim = certainty == Certainty::Victim;
  const bool was_judged = causes.first().has_value() && !verdict_at;
  const bool is_first = causes.add(cause, is_victim);
  actions.emplace_back(FailureSeen{.cause = cause, .is_first = is_first});
  if (state == AgentState::Stopping) return;  // a further one of the same group
  if (state != AgentState::Reforming) {
    if (group.has_survivors()) {
      reform(cause.sentence);
    } else {
      stop(reason, cause.sentence);
    }
  } else if (!group.has_survivors()) {
    stop(reason, cause.sentence);
  }
  // The culprit may show itself after its victims: then the generation is judged once more.
  if (was_judged && !is_first) return;
  if (certainty == Certainty::Certain) {
    judge();
  } else if (!verdict_at && !was_judged) {
    verdict_at = now + kVictimWindow;
  } else if (was_judged) {
    judge();
  }
}

Supervisor::Impl::Certainty Supervisor::Impl::certainty_of_exit(bool was_live) const {
  // Live workers outlive their peers and say so; a lone node has no peers.
  const bool sure = was_live || assignment->group_world_size == 1;
  return sure ? Certainty::Certain : Certainty::Uncertain;
}

// Time has shown nothing against it: the failure is this node's.
void Supervisor::Impl::window_ended() {
  const bool would_end_the_job =
      causes.has_culprit() && restarts_spent >= config.max_restarts && !announced;
  if (!would_end_the_job || state != AgentState::Stopping) return judge();
  announce();
  verdict_at = now + kDecisionWindow;
}

// The group is over for all nodes at once: they need not wait until this one has stopped its own.
void Supervisor::Impl::announce() {
  announced = causes.first();
  send_heartbeat();
}

void Supervisor::Impl::judge() {
  verdict_at.reset();
  const FirstCause cause = *causes.first();
  const bool is_charged = causes.has_culprit();
  const Verdict verdict = policy.judge({.cause = cause,
                                        .restarts_spent = restarts_spent,
                                        .is_charged = is_charged,
                                        .step = group.newest_step(),
                                        .ran_for = now - assigned_at});
  conclude(verdict, cause, is_charged);
}

// The service ended the generation before this node had judged: it knows whether to charge, and for
// what. Only the crash loop is still this node's to see.
void Supervisor::Impl::judge_as_told(const Rejoin& order) {
  verdict_at.reset();
  const FirstCause cause = *causes.first();
  // Another node joined again without a failure of its own: its workers were victims of ours.
  const bool is_ours = order.reason == RejoinReason::GenerationEnded && causes.has_culprit();
  const bool is_charged = is_ours || (announced && order.reason == RejoinReason::WorkerFailed);
  const Verdict verdict = policy.judge({.cause = cause,
                                        .restarts_spent = restarts_spent,
                                        .is_charged = false,
                                        .step = group.newest_step(),
                                        .ran_for = now - assigned_at});
  if (stop_cause && !is_charged) stop_cause = StopCause::MembershipChanged;
  conclude(verdict, cause, is_charged);
}

void Supervisor::Impl::conclude(Verdict verdict, const FirstCause& cause, bool is_charged) {
  if (verdict != Verdict::Restart) {
    final_outcome = verdict == Verdict::NoProgress ? Outcome::NoProgress : Outcome::Failed;
    final_since = now;
    failure = cause;
    // At once, so that the other nodes stop while this one does.
    leave(LeaveKind::Failed);
    if (state != AgentState::Stopping) stop(StopCause::WorkerFailed, cause.sentence);
    return;
  }
  if (is_charged) {
    failure = cause;
    actions.emplace_back(RestartStarted{cause.kind});
    if (state == AgentState::Stopping && group.any_running() && !announced) announce();
  } else {
    actions.emplace_back(ReformStarted{stop_cause.value_or(StopCause::MembershipChanged)});
  }
  if (state == AgentState::Reforming) send_join();
}

// Survivors keep their process: they abort and wait for their next assignment.
void Supervisor::Impl::reform(std::string reason) {
  const std::string told = one_line(reason, channel::kTextBytesMax);
  set_state(AgentState::Reforming, std::move(reason));
  for (Worker& worker : group.all()) {
    worker.needs_spawn = false;
    if (!worker.is_running() || worker.doomed) continue;
    if (!worker.is_survivor()) {
      doom(worker);
      continue;
    }
    worker.abort_of = assignment->generation;
    worker.kill_at = now + config.kill_grace;
    actions.emplace_back(
        TellWorker{worker.local_rank, channel::Abort{assignment->generation, told}});
  }
}

// The service was silent for so long that it may have given this node's place away.
void Supervisor::Impl::lease_lost() {
  is_fenced = true;
  // Live workers go on: their generation fences what they commit.
  if (group.is_live()) return;
  const FirstCause cause = cause_of_lost_lease(config.facts.node, contact.fence_after());
  actions.emplace_back(ReformStarted{StopCause::LeaseLost});
  stop(StopCause::LeaseLost, cause.sentence);
  kill_all();
}

// --- stopping ----------------------------------------------------------------------------------

void Supervisor::Impl::stop(StopCause cause, std::string reason) {
  if (state == AgentState::Stopping) {
    const bool keeps = final_outcome || stop_cause == StopCause::Closed;
    if (!keeps) {
      stop_cause = cause;
      verdict_at.reset();
    }
    return;
  }
  stop_cause = cause;
  if (cause != StopCause::WorkerFailed) verdict_at.reset();
  set_state(AgentState::Stopping, std::move(reason));
  for (Worker& worker : group.all()) {
    worker.needs_spawn = false;
    if (worker.is_running() && !worker.doomed) doom(worker);
  }
}

// A polite word now, SIGKILL after the grace. One still being started hears it when it is there.
void Supervisor::Impl::doom(Worker& worker) {
  worker.doomed = true;
  if (worker.stage != Stage::Alive) return;
  worker.kill_at = now + config.kill_grace;
  polite(worker);
}

void Supervisor::Impl::polite(const Worker& worker) {
  const bool drains = stop_cause == StopCause::Drained && state == AgentState::Stopping;
  if (drains && worker.is_live) {
    // Finishes its step, takes a snapshot and goes.
    actions.emplace_back(TellWorker{worker.local_rank, channel::Drain{}});
    return;
  }
  if (worker.is_live) actions.emplace_back(TellWorker{worker.local_rank, channel::Stop{}});
  actions.emplace_back(SignalWorker{worker.local_rank, drains ? *drain_signal : SIGTERM});
}

void Supervisor::Impl::kill(Worker& worker) {
  worker.doomed = true;
  worker.was_killed = true;
  worker.kill_at = now + kKillAgain;
  actions.emplace_back(SignalWorker{worker.local_rank, SIGKILL});
}

void Supervisor::Impl::kill_all() {
  for (Worker& worker : group.all()) {
    if (worker.stage == Stage::Alive) kill(worker);
  }
}

void Supervisor::Impl::on(const SignalReceived& event) {
  ++signals_seen;
  if (state == AgentState::Stopping && signals_seen > 1) return kill_all();
  drain(event.signal_number, "stopped by " + signal_name(event.signal_number));
}

void Supervisor::Impl::drain(int signal_number, const std::string& reason) {
  drain_signal = signal_number;
  switch (state) {
    case AgentState::Joining:
    case AgentState::Backoff:
    case AgentState::Finished:
      stop_cause = StopCause::Drained;
      return stopped();
    case AgentState::Starting:
    case AgentState::Running:
    case AgentState::Reforming:
    case AgentState::Stopping:
      return stop(StopCause::Drained, reason);
    case AgentState::Done:
      return;
  }
}

// Nothing runs any more: what the stop was for.
void Supervisor::Impl::stopped() {
  if (final_outcome) {
    // The first one may have been lost; the service closes the job once.
    if (!closed && final_since != now) leave(LeaveKind::Failed);
    return finish(Finish{.outcome = *final_outcome, .cause = failure}, "no restart is left");
  }
  if (closed) {
    Finish end{.outcome = closed->outcome, .cause = closed->cause, .refusal = refusal};
    if (end.outcome != Outcome::Succeeded) end.stopped_by_signal = drain_signal;
    return finish(std::move(end), refusal ? refusal->sentence : "the job is over");
  }
  if (stop_cause == StopCause::Drained) {
    leave(LeaveKind::Drained);
    return finish(Finish{.outcome = Outcome::Stopped, .stopped_by_signal = drain_signal},
                  "this node is drained");
  }
  const bool lost_lease = stop_cause == StopCause::LeaseLost;
  stop_cause.reset();
  begin_join(lost_lease ? "the lease was lost" : "the old group is gone");
}

void Supervisor::Impl::leave(LeaveKind kind) {
  actions.emplace_back(Leave{LeaveRequest{.node = config.facts.node,
                                          .incarnation = config.facts.incarnation,
                                          .run_id = config.run_id,
                                          .generation = last_seen,
                                          .kind = kind,
                                          .cause = failure}});
}

void Supervisor::Impl::finish(Finish end, std::string reason) {
  verdict_at.reset();
  rejoin_at.reset();
  set_state(AgentState::Done, std::move(reason));
  actions.emplace_back(std::move(end));
}

}  // namespace lrun::agent
