#include "rendezvous/words.h"

namespace lrun::rendezvous {

std::string_view word(Phase phase) {
  switch (phase) {
    case Phase::Recovering:
      return "recovering";
    case Phase::Forming:
      return "forming";
    case Phase::LastCall:
      return "last_call";
    case Phase::Active:
      return "active";
    case Phase::Closed:
      return "closed";
  }
  return "unknown";
}

std::string_view word(Role role) {
  switch (role) {
    case Role::Waiting:
      return "waiting";
    case Role::Participant:
      return "participant";
    case Role::Spare:
      return "spare";
    case Role::Finished:
      return "finished";
  }
  return "unknown";
}

std::string_view word(Evidence evidence) {
  switch (evidence) {
    case Evidence::Gone:
      return "gone";
    case Evidence::Silent:
      return "silent";
    case Evidence::Left:
      return "left";
    case Evidence::Drained:
      return "drained";
  }
  return "unknown";
}

std::string_view word(GenerationReason reason) {
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
  return "unknown";
}

std::string_view word(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::Closed:
      return "closed";
    case RefuseReason::DuplicateNode:
      return "duplicate_node";
    case RefuseReason::DuplicateRank:
      return "duplicate_rank";
    case RefuseReason::Superseded:
      return "superseded";
    case RefuseReason::StaleGeneration:
      return "stale_generation";
    case RefuseReason::JoinTimedOut:
      return "join_timed_out";
    case RefuseReason::Full:
      return "full";
    case RefuseReason::BadRequest:
      return "bad_request";
    case RefuseReason::UnknownNode:
      return "unknown_node";
    case RefuseReason::WrongRun:
      return "wrong_run";
  }
  return "unknown";
}

std::string_view word(FailureKind kind) {
  switch (kind) {
    case FailureKind::ExitCode:
      return "exit_code";
    case FailureKind::Signal:
      return "signal";
    case FailureKind::OutOfMemory:
      return "out_of_memory";
    case FailureKind::Stalled:
      return "stalled";
    case FailureKind::SpawnFailed:
      return "spawn_failed";
    case FailureKind::Reported:
      return "reported";
    case FailureKind::NodeLost:
      return "node_lost";
    case FailureKind::LeaseLost:
      return "lease_lost";
    case FailureKind::Interrupted:
      return "interrupted";
    case FailureKind::Refused:
      return "refused";
  }
  return "unknown";
}

std::string_view word(Outcome outcome) {
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
  return "unknown";
}

std::string_view word(AgentState state) {
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
  return "unknown";
}

}  // namespace lrun::rendezvous
