#include "launcher/words.h"

namespace lrun::launcher {

std::string_view word(rendezvous::Phase phase) {
  switch (phase) {
    case rendezvous::Phase::Recovering:
      return "recovering";
    case rendezvous::Phase::Forming:
      return "forming";
    case rendezvous::Phase::LastCall:
      return "last_call";
    case rendezvous::Phase::Active:
      return "active";
    case rendezvous::Phase::Closed:
      return "closed";
  }
  return "";
}

std::string_view word(rendezvous::Role role) {
  switch (role) {
    case rendezvous::Role::Waiting:
      return "waiting";
    case rendezvous::Role::Participant:
      return "participant";
    case rendezvous::Role::Spare:
      return "spare";
    case rendezvous::Role::Finished:
      return "finished";
  }
  return "";
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
  return "";
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
  return "";
}

std::string_view word(FailureKind kind) {
  switch (kind) {
    case FailureKind::ExitCode:
      return "exit";
    case FailureKind::Signal:
      return "signal";
    case FailureKind::OutOfMemory:
      return "oom";
    case FailureKind::Stalled:
      return "stall";
    case FailureKind::SpawnFailed:
      return "spawn";
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
  return "";
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
  return "";
}

}  // namespace lrun::launcher
