// What the rendezvous is told, what it decides, and the words for both.
//
// Pure types: includes the standard library and proto/ids.h only. The agent's supervisor uses the
// nouns (Assignment, Directive, FirstCause); the shells translate them to and from the wire.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/ids.h"

namespace lrun {

// --- nouns shared with the agent -----------------------------------------------------------------

// How a job ended. Maps to exit codes in launcher/exit_codes.h.
enum class Outcome { Succeeded, Failed, Stopped, NoProgress };

// Kinds of a failure's first cause. Each has one sentence in agent/root_cause.
enum class FailureKind {
  ExitCode,     // a worker ended with a code other than 0
  Signal,       // a worker was ended by a signal that the agent did not send
  OutOfMemory,  // … by the kernel's memory killer
  Stalled,      // alive, no progress within the stall time-out
  SpawnFailed,  // could not be started
  Reported,     // said `failed` on its channel
  NodeLost,     // the agent vanished
  LeaseLost,    // the agent had to fence itself
  Interrupted,  // the user's signal
  Refused,      // rendezvous unreachable, closed or refusing
};

// The first failure of a job or generation; everything later is a consequence.
struct FirstCause {
  FailureKind kind = FailureKind::ExitCode;
  NodeId node;
  std::optional<GlobalRank> global_rank;
  std::optional<LocalRank> local_rank;
  int pid = 0;
  int code = 0;          // exit code, or number of the signal
  std::string sentence;  // at most kSentenceBytesMax, one line, safe to print
  friend bool operator==(const FirstCause&, const FirstCause&) = default;
};
inline constexpr std::size_t kSentenceBytesMax = 1024;

// What a node brings. Sent with every join and heartbeat, so that the service can be rebuilt.
struct NodeFacts {
  NodeId node;
  Incarnation incarnation;
  int slots = 1;
  std::string role = "default";
  std::string address;                        // where peers reach this node's workers
  int master_port = 0;                        // a port the agent keeps bound for its group rank 0
  std::optional<GroupRank> fixed_rank;        // static rendezvous and schedulers that number nodes
  std::map<std::string, std::string> labels;  // topology, such as rack or switch
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// Why a generation was published.
enum class GenerationReason { Start, NodeJoined, NodeLost, Drained, WorkerFailed, Stalled };

// What a participant receives for a generation. All participants' assignments of one generation
// agree, and their global ranks cover [0, world_size) exactly once.
struct Assignment {
  Generation generation;
  GroupRank group_rank;
  int group_world_size = 1;
  GlobalRank first_global_rank;  // of local rank 0
  int slots = 1;
  int world_size = 1;
  int first_role_rank = 0;  // rank within the agent's role of local rank 0
  int role_world_size = 1;
  std::string master_addr;  // address and port of the node of group rank 0
  int master_port = 0;
  int restarts_spent = 0;  // of the whole job's budget
  GenerationReason reason = GenerationReason::Start;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

// Why a participant is told to form a new group.
enum class RejoinReason {
  GenerationEnded,
  NodeJoined,
  NodeLost,
  NodeDrained,
  WorkerFailed,
  Unknown
};

// Orders in replies to heartbeats and held watches.
struct Continue {
  friend bool operator==(const Continue&, const Continue&) = default;
};
struct Rejoin {
  RejoinReason reason = RejoinReason::Unknown;
  // The generation that is over. An agent that already runs a newer one ignores the order: it
  // crossed the new assignment on its way. None: nothing is known to be over, join in any case.
  Generation ended;
  friend bool operator==(const Rejoin&, const Rejoin&) = default;
};
struct DrainNode {
  friend bool operator==(const DrainNode&, const DrainNode&) = default;
};
struct StopJob {
  Outcome outcome = Outcome::Stopped;
  std::optional<FirstCause> cause;
  friend bool operator==(const StopJob&, const StopJob&) = default;
};
using Directive = std::variant<Continue, Rejoin, DrainNode, StopJob>;

enum class RefuseReason {
  Closed,           // the job is over; carries its outcome in the sentence
  DuplicateNode,    // another living incarnation holds this node's name
  DuplicateRank,    // another node holds this fixed rank
  Superseded,       // a newer incarnation of this node has taken its place
  StaleGeneration,  // the message belongs to an ended generation
  JoinTimedOut,     // no group within the join time-out; names who is missing
  Full,             // max_nodes reached and no spares wanted (local discovery: start a new job)
  BadRequest,       // a limit or a type was broken
  UnknownNode,      // drain of a node that is not here
  WrongRun,         // another run id is served here
};

// Who is retryable is part of the contract: everything else ends the agent.
inline bool is_retryable(RefuseReason reason) {
  return reason == RefuseReason::StaleGeneration || reason == RefuseReason::DuplicateNode;
}

struct Refusal {
  RefuseReason reason = RefuseReason::BadRequest;
  std::string sentence;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// The state an agent names in its heartbeats (architecture.md §5).
enum class AgentState { Joining, Starting, Running, Finished, Reforming, Stopping, Backoff, Done };

// Sums over a node's workers, for status and metrics.
struct WorkerProgress {
  std::int64_t step = 0;
  std::int64_t samples = 0;
  double samples_per_second = 0;
  friend bool operator==(const WorkerProgress&, const WorkerProgress&) = default;
};

// --- requests: what an agent says ----------------------------------------------------------------

struct JoinRequest {
  NodeFacts facts;
  std::string run_id;
  // The newest generation whose assignment this agent has received. Equal to the current one: "I
  // ran it, form a new one". Older: "my answer was lost", the same assignment is repeated.
  Generation last_seen;
  int restarts_spent = 0;
  std::optional<FirstCause> failure;  // set when the agent joins because its workers failed
};

struct HeartbeatRequest {
  NodeFacts facts;
  std::string run_id;
  std::optional<Assignment> running;  // the generation being run, whole, so that it can be rebuilt
  AgentState state = AgentState::Joining;
  int restarts_spent = 0;
  WorkerProgress progress;
  // Set while the agent stops its workers because one of them failed: the group is over for all at
  // once, and nobody waits for this agent's Join to hear of it.
  std::optional<FirstCause> failure{};
};

enum class LeaveKind { Succeeded, Failed, Drained };

struct LeaveRequest {
  NodeId node;
  Incarnation incarnation;
  std::string run_id;
  Generation generation;  // the one that ended; none when it never ran
  LeaveKind kind = LeaveKind::Drained;
  std::optional<FirstCause> cause;
};

struct WatchRequest {
  NodeId node;
  Incarnation incarnation;
  std::string run_id;
};

struct PublishRequest {
  Generation generation;
  std::string key;
  std::string value;
};

struct LookupRequest {
  Generation generation;
  std::string key;
};

// --- answers -------------------------------------------------------------------------------------

struct HeartbeatReply {
  Directive directive;
  Duration interval{};  // when to send the next one; grows with the group
  Duration lease{};     // counted by the agent from sending the request
};

// A held call that had nothing to say within its hold: ask again.
struct AskAgain {};

using JoinReply = std::variant<Assignment, AskAgain, Refusal>;
using WatchReply = std::variant<Directive, AskAgain, Refusal>;
using LookupReply = std::variant<std::string, AskAgain, Refusal>;

namespace rendezvous {

// --- configuration -------------------------------------------------------------------------------

// Every wait of the service. Durations are options of the launcher with these defaults.
struct Config {
  std::string run_id = "none";
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  Duration heartbeat = std::chrono::seconds(1);
  Duration lease = std::chrono::seconds(5);
  Duration gone_grace = std::chrono::milliseconds(200);
  Duration last_call = std::chrono::seconds(30);
  Duration kill_grace = std::chrono::seconds(30);
  Duration join_timeout = std::chrono::seconds(600);
  Duration grow_cooldown{};
  Duration hold = std::chrono::seconds(20);  // held calls are answered within this
  // False for a service started together with its job: nobody can be running yet, so it begins in
  // Forming instead of Recovering.
  bool may_have_predecessor = false;
};

// --- events: what the shell tells the machine ----------------------------------------------------

struct JoinReceived {
  Ticket ticket;
  JoinRequest request;
};
struct HeartbeatReceived {
  Ticket ticket;
  HeartbeatRequest request;
};
struct WatchReceived {
  Ticket ticket;
  WatchRequest request;
};
struct LeaveReceived {
  Ticket ticket;
  LeaveRequest request;
};
struct PublishReceived {
  Ticket ticket;
  PublishRequest request;
};
struct LookupReceived {
  Ticket ticket;
  LookupRequest request;
};
struct DrainReceived {
  Ticket ticket;
  NodeId node;
};
struct StopReceived {
  Ticket ticket;
  std::string reason;
};
// The client of a held call went away. For a Watch this is the evidence "gone"; the ticket counts
// as answered.
struct CallEnded {
  Ticket ticket;
};
// The service itself was not running for this long: leases are extended by it.
struct LagMeasured {
  Duration lag{};
};
// A deadline has come.
struct TimePassed {};

using Event =
    std::variant<JoinReceived, HeartbeatReceived, WatchReceived, LeaveReceived, PublishReceived,
                 LookupReceived, DrainReceived, StopReceived, CallEnded, LagMeasured, TimePassed>;

// --- actions: what the machine orders ------------------------------------------------------------

struct AnswerJoin {
  Ticket ticket;
  JoinReply reply;
};
struct AnswerHeartbeat {
  Ticket ticket;
  std::variant<HeartbeatReply, Refusal> reply;
};
struct AnswerWatch {
  Ticket ticket;
  WatchReply reply;
};
struct AnswerLookup {
  Ticket ticket;
  LookupReply reply;
};
// Answers Leave, Publish, Drain and Stop.
struct Acknowledge {
  Ticket ticket;
  std::optional<Refusal> refusal;
};

enum class Phase { Recovering, Forming, LastCall, Active, Closed };
enum class Evidence { Gone, Silent, Left, Drained };

// For the log and the metrics; each carries its reason.
struct PhaseChanged {
  Phase from = Phase::Forming;
  Phase to = Phase::Forming;
  std::string reason;
};
struct GenerationPublished {
  Generation generation;
  GenerationReason reason = GenerationReason::Start;
  int nodes = 0;
  int world_size = 0;
  Duration formed_in{};  // since the end of the previous group, or since the start
};
struct NodeJoined {
  NodeId node;
  std::string as;  // "waiting", "spare", "participant"
};
struct NodeDeparted {
  NodeId node;
  Evidence evidence = Evidence::Gone;
};
struct RestartCharged {
  int restarts_spent = 0;
  FirstCause cause;
};
struct CallRefused {
  NodeId node;
  Refusal refusal;
};
struct JobClosed {
  Outcome outcome = Outcome::Succeeded;
  std::optional<FirstCause> cause;
};

using Action = std::variant<AnswerJoin, AnswerHeartbeat, AnswerWatch, AnswerLookup, Acknowledge,
                            PhaseChanged, GenerationPublished, NodeJoined, NodeDeparted,
                            RestartCharged, CallRefused, JobClosed>;

// --- status: what people ask ---------------------------------------------------------------------

enum class Role { Waiting, Participant, Spare, Finished };

struct NodeStatus {
  NodeFacts facts;
  Role role = Role::Waiting;
  bool draining = false;
  std::optional<Assignment> assignment;
  AgentState state = AgentState::Joining;
  WorkerProgress progress;
  Duration lease_left{};
  bool is_ready = false;   // has joined since its last assignment: may be in the next group
  bool knows_end = false;  // has been told how the job ended
};

struct Status {
  Config config;
  Phase phase = Phase::Forming;
  Generation generation;
  GenerationReason reason = GenerationReason::Start;
  int world_size = 0;
  int restarts_spent = 0;
  std::map<FailureKind, int> restarts_by_kind;
  std::vector<NodeStatus> nodes;  // in group-rank order, then by name
  std::optional<Outcome> outcome;
  std::optional<FirstCause> cause;  // of the last failure
};

}  // namespace rendezvous
}  // namespace lrun
