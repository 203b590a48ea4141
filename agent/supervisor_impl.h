// The supervisor's insides, shared by its four source files and by nobody else.
//
//   supervisor.cc          public face, dispatch, membership: joins, assignments, directives
//   supervisor_time.cc     deadlines, and moves that follow from what has come
//   supervisor_workers.cc  what workers and their processes do: spawn, exit, messages, stalls
//   supervisor_stop.cc     failures, verdicts, stopping a group, the end
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/restart_policy.h"
#include "agent/retry_backoff.h"
#include "agent/root_cause.h"
#include "agent/service_contact.h"
#include "agent/supervisor.h"
#include "agent/worker_group.h"

namespace lrun::agent {

// A plain worker that ends on one of several nodes may be a victim of a node that died: the service
// notices closed connections within milliseconds, and is not told of the failure before it can
// have. Meanwhile the rest of the group is being stopped, so this seldom costs time.
inline constexpr Duration kVictimWindow = std::chrono::milliseconds(100);
// When such a failure would end the job, the service is given this long to say that a node was lost
// with it: its grace for gone nodes (200 ms) and a round trip.
inline constexpr Duration kDecisionWindow = std::chrono::milliseconds(500);
// A process that a SIGKILL did not end is sent another one after this.
inline constexpr Duration kKillAgain = std::chrono::seconds(5);
// Values remembered for a service that restarts; a generation's bootstrap needs a few per worker.
inline constexpr std::size_t kPublishedMax = 4096;

struct Supervisor::Impl {
  Impl(Config told, Instant start);

  // --- supervisor.cc
  void on(const Started&);
  void on(const Assigned& event);
  void on(const JoinFailed& event);
  void on(const DirectiveReceived& event);
  void on(const HeartbeatAnswered& event);
  void on(const ServiceUnreachable& event);
  void on(const TimePassed&) {}
  bool is_old_news(const Rejoin& order, std::optional<Generation> about) const;
  void follow(const Continue&) {}
  void follow(const Rejoin& order);
  void follow(const DrainNode&);
  void follow(const StopJob& order);
  void accept(const Assignment& news);
  void assign_survivors();
  void refused(const Refusal& why);
  void give_up();
  void lease_lost();
  void send_join();
  void send_heartbeat();
  void republish();
  // What a heartbeat names: none once the generation is given up.
  std::optional<Assignment> running() const;
  void set_state(AgentState to, std::string reason);

  // --- supervisor_time.cc
  void pass_deadlines();
  void settle();
  bool settle_once();
  std::optional<Instant> next_deadline() const;
  std::optional<Instant> fence_deadline() const;
  std::optional<Instant> give_up_deadline() const;

  // --- supervisor_workers.cc
  void on(const WorkerSpawned& event);
  void on(const SpawnFailed& event);
  void on(const WorkerExited& event);
  void on(const WorkerSaid& event);
  void on(const WorkerGarbled& event);
  void on(const LookupAnswered& event);
  void on(const KeeperLost&);
  void said(Worker& worker, const channel::Hello& hello);
  void said(Worker& worker, const channel::Progress& progress);
  void said(Worker& worker, const channel::PublishValue& value);
  void said(Worker& worker, const channel::LookupValue& value);
  void said(Worker& worker, const channel::Failed& failed);
  void said(Worker& worker, const channel::Aborted& aborted);
  void said(Worker& worker, const channel::Ready& ready);
  void said(Worker&, const channel::SnapshotTaken&) {}
  void said(Worker&, const channel::CheckpointSaved&) {}
  void spawn(Worker& worker);
  void slot_is_free(Worker& worker);
  bool is_belated_culprit(const Worker& worker, const ExitStatus& status) const;
  bool may_use_blackboard(const Worker& worker) const;
  WorkerEnv environment_of(const Worker& worker) const;
  Culprit culprit(const Worker& worker) const;
  void end_stalled();
  void kill_overdue();

  // --- supervisor_stop.cc
  // How sure it is that the failure began on this node.
  enum class Certainty { Certain, Uncertain, Victim };
  void on(const SignalReceived& event);
  void failed(const FirstCause& cause, StopCause stop, Certainty certainty);
  Certainty certainty_of_exit(bool was_live) const;
  void judge();
  void judge_as_told(const Rejoin& order);
  void window_ended();
  void announce();
  void conclude(Verdict verdict, const FirstCause& cause, bool is_charged);
  void reform(std::string reason);
  void stop(StopCause cause, std::string reason);
  void doom(Worker& worker);
  void polite(const Worker& worker);
  void kill(Worker& worker);
  void kill_all();
  void drain(int signal_number, const std::string& reason);
  void stopped();
  void begin_join(std::string reason);
  void leave(LeaveKind kind);
  void finish(Finish end, std::string reason);

  Config config;
  Instant now;
  std::vector<Action> actions;  // of the current step

  AgentState state = AgentState::Joining;
  bool has_started = false;
  Instant state_since;
  WorkerGroup group;
  ServiceContact contact;
  RestartPolicy policy;
  RetryBackoff join_backoff;
  RootCause causes;  // of the current generation

  std::optional<Assignment> assignment;
  Generation last_seen;  // the newest one accepted
  Instant assigned_at;
  int restarts_spent = 0;
  std::optional<FirstCause> failure;    // goes out with the next Join
  std::optional<FirstCause> announced;  // with heartbeats, while the failed group is being stopped
  bool is_fenced = false;               // noted for a live group; the next answer lifts it
  std::optional<Instant> rejoin_at;     // end of a backoff
  std::map<std::string, std::pair<LocalRank, std::string>> published;

  std::optional<StopCause> stop_cause;
  std::optional<Instant> verdict_at;     // a failure waits to be judged
  std::optional<Outcome> final_outcome;  // no restart left
  Instant final_since;
  std::optional<StopJob> closed;
  std::optional<Refusal> refusal;  // of a Join, while survivors had to be stopped first
  int signals_seen = 0;
  std::optional<int> drain_signal;
};

}  // namespace lrun::agent
