#include "agent/worker_group.h"

#include <algorithm>

namespace lrun::agent {
namespace {

void keep_earlier(std::optional<Instant>& earliest, std::optional<Instant> candidate) {
  if (candidate && (!earliest || *candidate < *earliest)) earliest = candidate;
}

}  // namespace

void WorkerGroup::prepare(const Assignment& assignment) {
  workers_.assign(static_cast<std::size_t>(assignment.slots), Worker{});
  int slot = 0;
  for (Worker& worker : workers_) {
    worker.local_rank = LocalRank{slot++};
    place(worker, assignment);
  }
}

void WorkerGroup::place(Worker& worker, const Assignment& assignment) const {
  worker.global_rank = GlobalRank{assignment.first_global_rank.value + worker.local_rank.value};
  worker.finished_well = false;
  worker.stall = StallDetector(stall_timeout_);
}

void WorkerGroup::begin_process(Worker& worker) const {
  worker = Worker{.local_rank = worker.local_rank,
                  .global_rank = worker.global_rank,
                  .stage = Stage::Spawning,
                  .stall = StallDetector(stall_timeout_)};
}

void WorkerGroup::end_process(Worker& worker) const {
  worker.stage = Stage::Absent;
  worker.doomed = false;
  worker.abort_of.reset();
  worker.kill_at.reset();
  worker.stall = StallDetector(stall_timeout_);
}

Worker* WorkerGroup::find(LocalRank local_rank) {
  if (local_rank.value < 0 || static_cast<std::size_t>(local_rank.value) >= workers_.size()) {
    return nullptr;
  }
  return &workers_[static_cast<std::size_t>(local_rank.value)];
}

bool WorkerGroup::any_running() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.is_running(); });
}

bool WorkerGroup::any_pending() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return worker.stage == Stage::Spawning || worker.needs_spawn;
  });
}

bool WorkerGroup::all_finished_well() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return worker.stage == Stage::Absent && worker.finished_well;
  });
}

bool WorkerGroup::is_live() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.is_running() && worker.is_live; });
}

bool WorkerGroup::has_survivors() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.is_survivor(); });
}

std::int64_t WorkerGroup::newest_step() const { return progress().step; }

WorkerProgress WorkerGroup::progress() const {
  WorkerProgress newest;
  for (const Worker& worker : workers_) {
    newest.step = std::max(newest.step, worker.progress.step);
    newest.samples = std::max(newest.samples, worker.progress.samples);
    newest.samples_per_second =
        std::max(newest.samples_per_second, worker.progress.samples_per_second);
  }
  return newest;
}

std::optional<Instant> WorkerGroup::next_kill() const {
  std::optional<Instant> earliest;
  for (const Worker& worker : workers_) {
    if (worker.stage == Stage::Alive) keep_earlier(earliest, worker.kill_at);
  }
  return earliest;
}

std::optional<Instant> WorkerGroup::next_stall() const {
  std::optional<Instant> earliest;
  for (const Worker& worker : workers_) {
    if (worker.stage == Stage::Alive && !worker.doomed) {
      keep_earlier(earliest, worker.stall.deadline());
    }
  }
  return earliest;
}

}  // namespace lrun::agent
