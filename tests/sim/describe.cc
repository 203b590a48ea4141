#include "tests/sim/describe.h"

#include "agent/root_cause.h"

namespace lrun::sim {
namespace {

// One overload for each alternative of a variant.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string number(std::int64_t value) { return std::to_string(value); }

std::string of_cause(const std::optional<FirstCause>& cause) {
  return cause ? ": " + cause->sentence : "";
}

std::string worker(LocalRank local_rank) { return "worker " + number(local_rank.value); }

std::string describe_message(const channel::ToWorker& message) {
  return std::visit(
      Overloaded{[](const channel::NewAssignment& news) {
                   return "assignment " + to_string(news.generation) + " as rank " +
                          number(news.global_rank.value) + " of " + number(news.world_size);
                 },
                 [](const channel::Abort& abort) {
                   return "abort " + to_string(abort.generation) + ": " + abort.reason;
                 },
                 [](const channel::Value& value) { return value.key + " = " + value.value; },
                 [](const channel::Drain&) { return std::string("drain"); },
                 [](const channel::Stop&) { return std::string("stop"); }},
      message);
}

std::string describe_leave(const LeaveRequest& request) {
  switch (request.kind) {
    case LeaveKind::Succeeded:
      return "leaves: succeeded";
    case LeaveKind::Failed:
      return "leaves: failed" + of_cause(request.cause);
    case LeaveKind::Drained:
      return "leaves: drained";
  }
  return "";
}

std::string describe_join(const JoinRequest& request) {
  std::string text = "joins, last seen " + to_string(request.last_seen);
  if (request.failure) text += ", failed: " + request.failure->sentence;
  return text;
}

std::string describe_finish(const agent::Finish& end) {
  std::string text = "finishes: " + to_string(end.outcome);
  if (end.stopped_by_signal) text += " by " + agent::signal_name(*end.stopped_by_signal);
  text += of_cause(end.cause);
  if (end.refusal) text += ", refused: " + end.refusal->sentence;
  return text;
}

}  // namespace

std::string to_string(AgentState state) {
  switch (state) {
    case AgentState::Joining:
      return "Joining";
    case AgentState::Starting:
      return "Starting";
    case AgentState::Running:
      return "Running";
    case AgentState::Finished:
      return "Finished";
    case AgentState::Reforming:
      return "Reforming";
    case AgentState::Stopping:
      return "Stopping";
    case AgentState::Backoff:
      return "Backoff";
    case AgentState::Done:
      return "Done";
  }
  return "";
}

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded:
      return "succeeded";
    case Outcome::Failed:
      return "failed";
    case Outcome::Stopped:
      return "stopped";
    case Outcome::NoProgress:
      return "no progress";
  }
  return "";
}

std::string to_string(rendezvous::Phase phase) {
  switch (phase) {
    case rendezvous::Phase::Recovering:
      return "Recovering";
    case rendezvous::Phase::Forming:
      return "Forming";
    case rendezvous::Phase::LastCall:
      return "LastCall";
    case rendezvous::Phase::Active:
      return "Active";
    case rendezvous::Phase::Closed:
      return "Closed";
  }
  return "";
}

std::string to_string(rendezvous::Evidence evidence) {
  switch (evidence) {
    case rendezvous::Evidence::Gone:
      return "gone";
    case rendezvous::Evidence::Silent:
      return "silent";
    case rendezvous::Evidence::Left:
      return "left";
    case rendezvous::Evidence::Drained:
      return "drained";
  }
  return "";
}

std::string to_string(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::Closed:
      return "closed";
    case RefuseReason::DuplicateNode:
      return "duplicate node";
    case RefuseReason::DuplicateRank:
      return "duplicate rank";
    case RefuseReason::Superseded:
      return "superseded";
    case RefuseReason::StaleGeneration:
      return "stale generation";
    case RefuseReason::JoinTimedOut:
      return "join timed out";
    case RefuseReason::Full:
      return "full";
    case RefuseReason::BadRequest:
      return "bad request";
    case RefuseReason::UnknownNode:
      return "unknown node";
    case RefuseReason::WrongRun:
      return "wrong run";
  }
  return "";
}

std::string to_string(GenerationReason reason) {
  switch (reason) {
    case GenerationReason::Start:
      return "start";
    case GenerationReason::NodeJoined:
      return "node joined";
    case GenerationReason::NodeLost:
      return "node lost";
    case GenerationReason::Drained:
      return "drained";
    case GenerationReason::WorkerFailed:
      return "worker failed";
    case GenerationReason::Stalled:
      return "stalled";
  }
  return "";
}

std::string to_string(RejoinReason reason) {
  switch (reason) {
    case RejoinReason::GenerationEnded:
      return "generation ended";
    case RejoinReason::NodeJoined:
      return "node joined";
    case RejoinReason::NodeLost:
      return "node lost";
    case RejoinReason::NodeDrained:
      return "node drained";
    case RejoinReason::WorkerFailed:
      return "worker failed";
    case RejoinReason::Unknown:
      return "unknown";
  }
  return "";
}

std::string to_string(agent::StopCause cause) {
  switch (cause) {
    case agent::StopCause::WorkerFailed:
      return "worker failed";
    case agent::StopCause::Stalled:
      return "stalled";
    case agent::StopCause::MembershipChanged:
      return "membership changed";
    case agent::StopCause::Drained:
      return "drained";
    case agent::StopCause::Closed:
      return "closed";
    case agent::StopCause::LeaseLost:
      return "lease lost";
    case agent::StopCause::SpawnFailed:
      return "spawn failed";
  }
  return "";
}

std::string describe(const Assignment& assignment) {
  return "generation " + lrun::to_string(assignment.generation) + ", node " +
         number(assignment.group_rank.value) + " of " + number(assignment.group_world_size) +
         ", ranks " + number(assignment.first_global_rank.value) + "-" +
         number(assignment.first_global_rank.value + assignment.slots - 1) + " of " +
         number(assignment.world_size) + ", restarts " + number(assignment.restarts_spent);
}

std::string describe(const Directive& directive) {
  return std::visit(
      Overloaded{[](const Continue&) { return std::string(); },
                 [](const Rejoin& order) { return "told to rejoin: " + to_string(order.reason); },
                 [](const DrainNode&) { return std::string("told to drain"); },
                 [](const StopJob& order) {
                   return "told to stop: " + to_string(order.outcome) + of_cause(order.cause);
                 }},
      directive);
}

std::string describe(const agent::Action& action) {
  return std::visit(
      Overloaded{
          [](const agent::Join& join) { return describe_join(join.request); },
          [](const agent::SendHeartbeat&) { return std::string(); },
          [](const agent::Leave& leave) { return describe_leave(leave.request); },
          [](const agent::SpawnWorker& spawn) {
            return "spawns " + worker(spawn.local_rank) + " as rank " +
                   number(spawn.environment.global_rank.value) + " of " +
                   number(spawn.environment.world_size) + ", generation " +
                   lrun::to_string(spawn.environment.generation);
          },
          [](const agent::SignalWorker& order) {
            return agent::signal_name(order.signal_number) + " to " + worker(order.local_rank);
          },
          [](const agent::TellWorker& order) {
            return "tells " + worker(order.local_rank) + " " + describe_message(order.message);
          },
          [](const agent::Publish& publish) {
            return "publishes " + publish.request.key + " of " + worker(publish.local_rank);
          },
          [](const agent::Lookup& lookup) {
            return "looks up " + lookup.request.key + " for " + worker(lookup.local_rank);
          },
          [](const agent::StateChanged& change) {
            return to_string(change.from) + " -> " + to_string(change.to) + ": " + change.reason;
          },
          [](const agent::FailureSeen& failure) {
            return (failure.is_first ? "first failure: " : "failure: ") + failure.cause.sentence;
          },
          [](const agent::RestartStarted&) { return std::string("restarts"); },
          [](const agent::ReformStarted& reform) { return "re-forms: " + to_string(reform.cause); },
          [](const agent::Finish& end) { return describe_finish(end); }},
      action);
}

std::string describe(const rendezvous::Action& action) {
  using namespace rendezvous;
  return std::visit(
      Overloaded{
          [](const AnswerJoin&) { return std::string(); },
          [](const AnswerHeartbeat&) { return std::string(); },
          [](const AnswerWatch&) { return std::string(); },
          [](const AnswerLookup&) { return std::string(); },
          [](const Acknowledge&) { return std::string(); },
          [](const PhaseChanged& change) {
            return to_string(change.from) + " -> " + to_string(change.to) + ": " + change.reason;
          },
          [](const GenerationPublished& published) {
            return "publishes generation " + lrun::to_string(published.generation) + " (" +
                   to_string(published.reason) + "): " + number(published.nodes) +
                   " nodes, world size " + number(published.world_size);
          },
          [](const NodeJoined& joined) { return joined.node.value + " joined as " + joined.as; },
          [](const NodeDeparted& departed) {
            return departed.node.value + " departed: " + to_string(departed.evidence);
          },
          [](const RestartCharged& charged) {
            return "charges restart " + number(charged.restarts_spent) + ": " +
                   charged.cause.sentence;
          },
          [](const CallRefused& refused) {
            return "refuses " + refused.node.value + ": " + refused.refusal.sentence;
          },
          [](const JobClosed& closed) {
            return "closes the job: " + to_string(closed.outcome) + of_cause(closed.cause);
          }},
      action);
}

}  // namespace lrun::sim
