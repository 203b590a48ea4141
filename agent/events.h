// What one node's supervisor is told and what it orders.
//
// Pure types: the standard library, proto/ and the nouns of rendezvous/events.h. The agent's shell
// (agent/agent.cc) turns the world into events and actions into deeds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/channel.h"
#include "proto/ids.h"
#include "proto/worker_env.h"
#include "rendezvous/events.h"

namespace lrun::agent {

// Everything the supervisor needs to know beforehand.
struct Config {
  std::string run_id = "none";
  NodeFacts facts;
  int max_restarts = 0;
  Duration kill_grace = std::chrono::seconds(30);  // polite signal to SIGKILL
  Duration heartbeat = std::chrono::seconds(1);    // until the service tells another
  Duration lease = std::chrono::seconds(5);        // until the service tells another
  std::optional<Duration> stall_timeout;           // none: a silent worker is left alone
  int crash_loop_limit = 5;                        // equal failures in a row without progress
  // Without a word from the service for this long, and with nothing running, the agent gives up.
  Duration unreachable_timeout = std::chrono::seconds(600);
  // Where workers' error records go; "<folder>/attempt_<n>/<local rank>/error.json".
  std::string log_folder;
};

// How a worker's process ended.
struct ExitStatus {
  bool by_signal = false;
  int code = 0;  // exit code or signal number
  bool core_dumped = false;
  bool out_of_memory = false;
  bool is_success() const { return !by_signal && code == 0; }
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// Why a group is being stopped. Printed, counted, and what follows depends on it.
enum class StopCause {
  WorkerFailed,
  Stalled,
  MembershipChanged,
  Drained,
  Closed,
  LeaseLost,
  SpawnFailed
};

// --- events
// ----------------------------------------------------------------------------------------

struct Started {};  // the first event: begin to join
struct Assigned {
  Assignment assignment;
};
struct JoinFailed {
  Refusal refusal;
};
struct WorkerSpawned {
  LocalRank local_rank;
  int pid = 0;
};
struct SpawnFailed {
  LocalRank local_rank;
  std::string reason;
};
// The worker's process was reaped and, within a bound, its process group is gone.
struct WorkerExited {
  LocalRank local_rank;
  ExitStatus status;
  std::string last_words;  // the worker's error record or last lines of stderr, for the report
};
struct WorkerSaid {
  LocalRank local_rank;
  channel::FromWorker message;
};
// The worker broke the grammar of its channel: it counts as plain from now on.
struct WorkerGarbled {
  LocalRank local_rank;
  std::string reason;
};
struct DirectiveReceived {
  Directive directive;
  // For the answer to a heartbeat: the generation which that heartbeat said was running ({0, 0}
  // when none). A `Rejoin` about another generation than the running one is old news and is
  // dropped. None for the answer to a Watch.
  std::optional<Generation> about{};
};
struct HeartbeatAnswered {
  Instant sent_at;  // of the request that was answered
  Duration interval{};
  Duration lease{};
};
// A call failed. `host_answered`: the host is alive, so the fence deadline is pushed out.
struct ServiceUnreachable {
  bool host_answered = false;
  bool is_final = false;  // ends the agent when nothing runs
  std::string sentence;
};
struct LookupAnswered {
  LocalRank local_rank;
  std::string key;
  std::string value;
  // That of the request: a value of an ended generation is dropped. {0, 0}: not known.
  Generation generation{};
};
struct SignalReceived {
  int signal_number = 0;
};
// The process that holds the workers died; they are gone, or are being ended. No WorkerSpawned,
// SpawnFailed or WorkerExited of them follows.
struct KeeperLost {};
struct TimePassed {};

using Event =
    std::variant<Started, Assigned, JoinFailed, WorkerSpawned, SpawnFailed, WorkerExited,
                 WorkerSaid, WorkerGarbled, DirectiveReceived, HeartbeatAnswered,
                 ServiceUnreachable, LookupAnswered, SignalReceived, KeeperLost, TimePassed>;

// --- actions
// ---------------------------------------------------------------------------------------

// The shell repeats it until there is an assignment or a refusal; a second Join replaces the first.
struct Join {
  JoinRequest request;
};
struct SendHeartbeat {
  HeartbeatRequest request;
};
struct Leave {
  LeaveRequest request;
};
// Answered by exactly one WorkerSpawned or SpawnFailed, unless KeeperLost comes first.
struct SpawnWorker {
  LocalRank local_rank;
  WorkerEnv environment;  // channel_fd is filled in by the shell
};
// To the worker's whole process group.
struct SignalWorker {
  LocalRank local_rank;
  int signal_number = 0;
};
struct TellWorker {
  LocalRank local_rank;
  channel::ToWorker message;
};
struct Publish {
  LocalRank local_rank;
  PublishRequest request;
};
// The shell repeats it until answered or until the generation changes.
struct Lookup {
  LocalRank local_rank;
  LookupRequest request;
};
struct StateChanged {
  AgentState from = AgentState::Joining;
  AgentState to = AgentState::Joining;
  std::string reason;
};
// A worker failed (not: was stopped by us). The first of a generation is the first cause.
struct FailureSeen {
  FirstCause cause;
  bool is_first = false;
};
struct RestartStarted {
  FailureKind kind = FailureKind::ExitCode;
};
struct ReformStarted {
  StopCause cause = StopCause::MembershipChanged;
};
// Everything is over; the shell ends. `cause` is for the report.
struct Finish {
  Outcome outcome = Outcome::Succeeded;
  std::optional<FirstCause> cause{};
  std::optional<Refusal> refusal{};        // exit 3 instead of 1
  std::optional<int> stopped_by_signal{};  // exit 128 + n
};

using Action =
    std::variant<Join, SendHeartbeat, Leave, SpawnWorker, SignalWorker, TellWorker, Publish, Lookup,
                 StateChanged, FailureSeen, RestartStarted, ReformStarted, Finish>;

}  // namespace lrun::agent
