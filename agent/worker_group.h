// The workers of one node: what each process is at, and the questions the supervisor asks about
// them.
//
// Owns the slots. Decides nothing: who is stopped, replaced or kept is the supervisor's business.
// Pure; called by the supervisor only.
#pragma once

#include <optional>
#include <vector>

#include "agent/events.h"
#include "agent/stall_detector.h"

namespace lrun::agent {

// Where a slot's process is in its life.
enum class Stage { Absent, Spawning, Alive };

// One slot. A process is `doomed` once it was told to end, or was found to have failed: it is no
// survivor, its end is no failure, and its slot is free only when it was reaped.
struct Worker {
  LocalRank local_rank;
  GlobalRank global_rank;
  Stage stage = Stage::Absent;
  int pid = 0;
  bool is_live = false;    // said so, and never broke the grammar
  bool is_trusted = true;  // false after garbage on its channel
  bool doomed = false;
  bool needs_spawn = false;  // the slot's next process waits for the end of this one
  bool finished_well = false;
  // Told to abort this generation, and has not said that it did. Until then what it publishes and
  // looks up still belongs to the old generation.
  std::optional<Generation> abort_of{};
  std::optional<Instant> kill_at{};  // SIGKILL when this comes
  bool was_killed = false;           // by this agent
  channel::Progress progress{};
  Instant last_heard{};
  StallDetector stall{};

  bool is_running() const { return stage != Stage::Absent; }
  bool is_survivor() const { return stage == Stage::Alive && is_live && !doomed; }
};

class WorkerGroup {
 public:
  explicit WorkerGroup(std::optional<Duration> stall_timeout) : stall_timeout_(stall_timeout) {}

  // Empty slots for a generation; only when nothing runs.
  void prepare(const Assignment& assignment);
  // The worker's place in a new generation; what it reported belongs to the old one.
  void place(Worker& worker, const Assignment& assignment) const;
  // The process of this slot is a fresh one.
  void begin_process(Worker& worker) const;
  void end_process(Worker& worker) const;

  // Null for a rank that this group does not have.
  Worker* find(LocalRank local_rank);
  std::vector<Worker>& all() { return workers_; }
  const std::vector<Worker>& all() const { return workers_; }

  bool any_running() const;
  bool any_pending() const;  // being spawned, or waiting for its slot
  bool all_finished_well() const;
  bool is_live() const;  // any of its running workers said so
  bool has_survivors() const;
  std::int64_t newest_step() const;
  WorkerProgress progress() const;
  // Next SIGKILL that is due.
  std::optional<Instant> next_kill() const;
  std::optional<Instant> next_stall() const;

 private:
  std::optional<Duration> stall_timeout_;
  std::vector<Worker> workers_;
};

}  // namespace lrun::agent
