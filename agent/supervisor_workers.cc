#include <algorithm>
#include <csignal>

#include "agent/supervisor_impl.h"

namespace lrun::agent {

// --- processes ---------------------------------------------------------------------------------

void Supervisor::Impl::spawn(Worker& worker) {
  group.begin_process(worker);
  worker.last_heard = now;
  actions.emplace_back(SpawnWorker{worker.local_rank, environment_of(worker)});
}

WorkerEnv Supervisor::Impl::environment_of(const Worker& worker) const {
  const int local = worker.local_rank.value;
  WorkerEnv environment{.local_rank = worker.local_rank,
                        .local_world_size = assignment->slots,
                        .global_rank = worker.global_rank,
                        .world_size = assignment->world_size,
                        .group_rank = assignment->group_rank,
                        .group_world_size = assignment->group_world_size,
                        .role_name = config.facts.role,
                        .role_rank = assignment->first_role_rank + local,
                        .role_world_size = assignment->role_world_size,
                        .master_addr = assignment->master_addr,
                        .master_port = assignment->master_port,
                        .run_id = config.run_id,
                        .generation = assignment->generation,
                        .restart_count = assignment->restarts_spent,
                        .max_restarts = config.max_restarts,
                        .error_file = "",
                        .channel_fd = -1};
  if (!config.log_folder.empty()) {
    environment.error_file = config.log_folder + "/attempt_" +
                             std::to_string(assignment->restarts_spent) + "/" +
                             std::to_string(local) + "/error.json";
  }
  return environment;
}

void Supervisor::Impl::on(const WorkerSpawned& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || worker->stage != Stage::Spawning) return;
  worker->stage = Stage::Alive;
  worker->pid = event.pid;
  worker->last_heard = now;
  // The order to stop came while it was being started.
  if (!worker->doomed) return;
  if (stop_cause == StopCause::LeaseLost) {
    kill(*worker);
  } else {
    doom(*worker);
  }
}

void Supervisor::Impl::on(const SpawnFailed& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || worker->stage != Stage::Spawning) return;
  const bool expected = worker->doomed;
  const FirstCause cause = cause_of_spawn_failure(culprit(*worker), event.reason);
  slot_is_free(*worker);
  if (!expected) failed(cause, StopCause::SpawnFailed, Certainty::Certain);
}

void Supervisor::Impl::on(const WorkerExited& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || !worker->is_running()) return;
  const Culprit who = culprit(*worker);
  const bool was_live = worker->is_live;
  const bool expected = worker->doomed && !is_belated_culprit(*worker, event.status);
  worker->finished_well = event.status.is_success();
  slot_is_free(*worker);
  if (expected) return;
  if (!event.status.is_success()) {
    failed(cause_of_exit(who, event.status, event.last_words), StopCause::WorkerFailed,
           certainty_of_exit(was_live));
  } else if (state == AgentState::Reforming && !group.has_survivors()) {
    stop(StopCause::MembershipChanged, "the last survivor ended");
  }
}

// Its victims' complaints came first and stopped the group, but it had died before: of a signal
// that this agent has not sent.
bool Supervisor::Impl::is_belated_culprit(const Worker& worker, const ExitStatus& status) const {
  const bool only_victims_known = verdict_at && !causes.has_culprit();
  const bool is_ours = worker.was_killed || status.code == SIGTERM || status.code == drain_signal;
  return only_victims_known && status.by_signal && !is_ours;
}

// The process of this slot was reaped; its successor may have been waiting for that.
void Supervisor::Impl::slot_is_free(Worker& worker) {
  const bool needs_spawn = worker.needs_spawn;
  group.end_process(worker);
  if (needs_spawn) spawn(worker);
}

void Supervisor::Impl::on(const KeeperLost&) {
  if (!group.any_running()) return;
  bool any_unexpected = false;
  for (Worker& worker : group.all()) {
    if (!worker.is_running()) continue;
    any_unexpected = any_unexpected || !worker.doomed;
    slot_is_free(worker);
  }
  if (!any_unexpected || state == AgentState::Stopping) return;
  failed(cause_of_keeper_loss(config.facts.node), StopCause::WorkerFailed, Certainty::Certain);
}

Culprit Supervisor::Impl::culprit(const Worker& worker) const {
  return {.node = config.facts.node,
          .global_rank = worker.global_rank,
          .local_rank = worker.local_rank,
          .pid = worker.pid};
}

// --- channel -----------------------------------------------------------------------------------

void Supervisor::Impl::on(const WorkerSaid& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || !worker->is_running() || !worker->is_trusted) return;
  worker->last_heard = now;
  std::visit([this, worker](const auto& message) { said(*worker, message); }, event.message);
}

void Supervisor::Impl::on(const WorkerGarbled& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || !worker->is_running() || !worker->is_trusted) return;
  worker->is_trusted = false;
  worker->is_live = false;
  worker->abort_of.reset();
  worker->stall = StallDetector(std::nullopt);
  // It was to go on in the next generation; now nobody can tell it to.
  if (state != AgentState::Reforming || worker->doomed) return;
  doom(*worker);
  if (!group.has_survivors()) stop(StopCause::MembershipChanged, event.reason);
}

void Supervisor::Impl::said(Worker& worker, const channel::Hello& hello) {
  worker.is_live = hello.live && hello.version == channel::kVersion;
}

void Supervisor::Impl::said(Worker& worker, const channel::Progress& progress) {
  worker.progress = progress;
  // What is reported before the abort is answered belongs to the old generation.
  if (!worker.abort_of) worker.stall.note(now, progress);
}

bool Supervisor::Impl::may_use_blackboard(const Worker& worker) const {
  const bool runs = state == AgentState::Starting || state == AgentState::Running;
  return runs && !worker.doomed && !worker.abort_of;
}

void Supervisor::Impl::said(Worker& worker, const channel::PublishValue& value) {
  if (!may_use_blackboard(worker)) return;
  if (published.size() < kPublishedMax || published.contains(value.key)) {
    published[value.key] = {worker.local_rank, value.value};
  }
  actions.emplace_back(
      Publish{worker.local_rank,
              PublishRequest{
                  .generation = assignment->generation, .key = value.key, .value = value.value}});
}

void Supervisor::Impl::said(Worker& worker, const channel::LookupValue& value) {
  if (!may_use_blackboard(worker)) return;
  actions.emplace_back(Lookup{
      worker.local_rank, LookupRequest{.generation = assignment->generation, .key = value.key}});
}

void Supervisor::Impl::on(const LookupAnswered& event) {
  Worker* worker = group.find(event.local_rank);
  if (worker == nullptr || worker->stage != Stage::Alive || !may_use_blackboard(*worker)) return;
  if (!is_none(event.generation) && event.generation != assignment->generation) return;
  actions.emplace_back(TellWorker{event.local_rank, channel::Value{event.key, event.value}});
}

// A live worker stays and waits for its next assignment; a plain one cannot go on.
void Supervisor::Impl::said(Worker& worker, const channel::Failed& reported) {
  if (worker.doomed || worker.abort_of) return;
  if (state != AgentState::Starting && state != AgentState::Running) return;
  const FirstCause cause = cause_of_report(culprit(worker), reported);
  failed(cause, StopCause::WorkerFailed, reported.peer ? Certainty::Victim : Certainty::Certain);
}

void Supervisor::Impl::said(Worker& worker, const channel::Aborted& aborted) {
  if (!worker.abort_of || aborted.generation < *worker.abort_of) return;
  worker.abort_of.reset();
  if (!worker.doomed) worker.kill_at.reset();
}

void Supervisor::Impl::said(Worker& worker, const channel::Ready& ready) {
  // Whoever is ready for a later generation has left the earlier one.
  if (worker.abort_of && ready.generation > *worker.abort_of) {
    said(worker, channel::Aborted{ready.generation});
  }
}

// --- deadlines ---------------------------------------------------------------------------------

void Supervisor::Impl::end_stalled() {
  if (state != AgentState::Starting && state != AgentState::Running) return;
  std::vector<FirstCause> stalled;
  for (Worker& worker : group.all()) {
    if (worker.stage != Stage::Alive || worker.doomed || !worker.stall.is_stalled(now)) continue;
    stalled.push_back(cause_of_stall(culprit(worker), *config.stall_timeout, worker.progress.step));
    kill(worker);
  }
  for (const FirstCause& cause : stalled) failed(cause, StopCause::Stalled, Certainty::Certain);
}

void Supervisor::Impl::kill_overdue() {
  for (Worker& worker : group.all()) {
    if (worker.stage != Stage::Alive || !worker.kill_at || *worker.kill_at > now) continue;
    const bool was_told_to_end = worker.doomed;
    const FirstCause cause =
        cause_of_stall(culprit(worker), config.kill_grace, worker.progress.step);
    kill(worker);
    // A survivor that does not answer `abort` is no survivor.
    if (was_told_to_end) continue;
    if (state == AgentState::Reforming) {
      if (!group.has_survivors()) stop(StopCause::MembershipChanged, "no survivor answered");
    } else {
      failed(cause, StopCause::Stalled, Certainty::Certain);
    }
  }
}

}  // namespace lrun::agent
