#include "agent/agent_log.h"

#include <string>
#include <vector>

#include "agent/root_cause.h"
#include "agent/worker_environment.h"
#include "base/log.h"

namespace lrun::agent::agent_log {
namespace {

std::string word(GenerationReason reason) {
  switch (reason) {
    case GenerationReason::Start:
      return "start";
    case GenerationReason::NodeJoined:
      return "node_joined";
    case GenerationReason::NodeLost:
      return "node_lost";
    case GenerationReason::Drained:
      return "drained";
    case GenerationReason::WorkerFailed:
      return "worker_failed";
    case GenerationReason::Stalled:
      return "stalled";
  }
  return "";
}

std::string word(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded:
      return "succeeded";
    case Outcome::Failed:
      return "failed";
    case Outcome::Stopped:
      return "stopped";
    case Outcome::NoProgress:
      return "no_progress";
  }
  return "";
}

// "exit:0", "signal:9".
std::string word(const ExitStatus& status) {
  return (status.by_signal ? "signal:" : "exit:") + std::to_string(status.code);
}

}  // namespace

std::string word(AgentState state) {
  switch (state) {
    case AgentState::Joining:
      return "joining";
    case AgentState::Starting:
      return "starting";
    case AgentState::Running:
      return "running";
    case AgentState::Finished:
      return "finished";
    case AgentState::Reforming:
      return "reforming";
    case AgentState::Stopping:
      return "stopping";
    case AgentState::Backoff:
      return "backoff";
    case AgentState::Done:
      return "done";
  }
  return "";
}

void worker_started(const WorkerSpawned& event, const WorkerEnv& worker) {
  log::info("worker_started", {{"generation", to_string(worker.generation)},
                               {"local_rank", event.local_rank.value},
                               {"global_rank", worker.global_rank.value},
                               {"pid", event.pid}});
}

void worker_exited(const WorkerEnd& end, Generation generation) {
  const FailedWorker& details = end.details;
  const bool is_expected = details.status.is_success() || end.was_signalled;
  (is_expected ? log::info : log::warn)("worker_exited",
                                        {{"generation", to_string(generation)},
                                         {"local_rank", details.local_rank.value},
                                         {"global_rank", details.global_rank.value},
                                         {"pid", details.pid},
                                         {"status", word(details.status)},
                                         {"stopped_by_agent", end.was_signalled},
                                         {"core_dumped", details.status.core_dumped},
                                         {"out_of_memory", details.status.out_of_memory}});
}

void state_changed(const StateChanged& change, Generation generation) {
  log::info("state_changed", {{"generation", to_string(generation)},
                              {"from", word(change.from)},
                              {"to", word(change.to)},
                              {"reason", change.reason}});
}

void assigned(const Assignment& assignment) {
  log::info("assigned", {{"generation", to_string(assignment.generation)},
                         {"reason", word(assignment.reason)},
                         {"group_rank", assignment.group_rank.value},
                         {"group_world_size", assignment.group_world_size},
                         {"first_global_rank", assignment.first_global_rank.value},
                         {"world_size", assignment.world_size},
                         {"restarts_spent", assignment.restarts_spent}});
}

void failure_seen(const FailureSeen& failure, Generation generation) {
  log::warn("failure_seen", {{"generation", to_string(generation)},
                             {"is_first", failure.is_first},
                             {"cause", failure.cause.sentence}});
}

void refused(const Refusal& refusal, const char* what) {
  log::warn("refused", {{"what", what}, {"reason", refusal.sentence}});
}

void finished(const Finish& finish) {
  const bool is_well = finish.outcome == Outcome::Succeeded || finish.outcome == Outcome::Stopped;
  const std::string cause = finish.refusal ? finish.refusal->sentence
                            : finish.cause ? finish.cause->sentence
                                           : "";
  (is_well ? log::info : log::error)("finished",
                                     {{"outcome", word(finish.outcome)}, {"cause", cause}});
}

void environment_notes(const Environment& parent, int slots) {
  std::string names;
  for (const std::string& name : overridden_names(parent)) {
    names += (names.empty() ? "" : ",") + name;
  }
  if (!names.empty()) {
    log::warn("environment_overridden",
              {{"names", names}, {"reason", "workers see the values of this job"}});
  }
  if (limits_omp_threads(parent, slots)) {
    log::warn("omp_threads_limited",
              {{"OMP_NUM_THREADS", 1},
               {"reason", "several workers share this machine; set the variable to choose"}});
  }
}

}  // namespace lrun::agent::agent_log
