// One life of an agent process: a production supervisor and, around it, what the agent's shell
// does.
//
// Owns the calls to the service: a Join is repeated until there is an assignment or a refusal, a
// Watch is always open, a Lookup and a Publish are repeated until answered or until the generation
// changes, a Leave until answered or until the process exits, a heartbeat is sent once. The same as
// agent/rendezvous_calls does, with the same RetryBackoff. Refuses to know networks and workers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/retry_backoff.h"
#include "agent/supervisor.h"
#include "tests/sim/agenda.h"
#include "tests/sim/chronicle.h"
#include "tests/sim/network.h"
#include "tests/sim/workers.h"

namespace lrun::sim {

class Process {
 public:
  struct Surroundings {
    Agenda& agenda;
    Network& network;
    Workers& workers;
    Chronicle& chronicle;
    // After every step of the supervisor.
    std::function<void(Process&, const std::vector<agent::Action>&)> on_step;
  };
  Process(Surroundings around, ProcessId id, agent::Config config, WorkerHabits habits,
          Duration hold);

  void start();
  void step(const agent::Event& event);
  // Runs the deed now, or when the machine is no longer paused.
  void run(std::function<void()> deed);
  void pause() { is_paused_ = true; }
  void resume();

  ProcessId id() const { return id_; }
  const std::string& node() const { return config_.facts.node.value; }
  const agent::Supervisor& supervisor() const { return supervisor_; }
  const WorkerHabits& habits() const { return habits_; }
  bool is_paused() const { return is_paused_; }
  // Set once everything is over; the process exits when its last call is answered.
  const std::optional<agent::Finish>& finish() const { return finish_; }
  bool may_exit() const { return finish_ && leaves_open_ == 0; }
  std::optional<Instant> next_deadline() const;
  // When this agent last learnt that it may go on: the fence counts from here at the earliest.
  Instant resumed_at() const { return resumed_at_; }

 private:
  // A call that is made again until something ends it.
  struct Repeating {
    explicit Repeating(std::uint64_t seed) : backoff(seed, agent::RetryBackoff::Limits{}) {}
    agent::RetryBackoff backoff;
    Instant asked_at{};
    std::uint64_t turn = 0;  // what an earlier turn planned or asked is dropped
  };

  void perform(const agent::Join& join);
  void perform(const agent::SendHeartbeat& heartbeat);
  void perform(const agent::Leave& leave);
  void perform(const agent::SpawnWorker& spawn);
  void perform(const agent::SignalWorker& order);
  void perform(const agent::TellWorker& order);
  void perform(const agent::Publish& publish);
  void perform(const agent::Lookup& lookup);
  void perform(const agent::StateChanged&) {}
  void perform(const agent::FailureSeen&) {}
  void perform(const agent::RestartStarted&) {}
  void perform(const agent::ReformStarted&) {}
  void perform(const agent::Finish& end);

  void join_once();
  void joined(const JoinReply& reply);
  void watch_once();
  void watched(const WatchReply& reply);
  void told(const Directive& directive, std::optional<Generation> about);
  void refused(const Refusal& refusal);
  void lookup_once(LocalRank local_rank, const LookupRequest& request);
  void publish_once(const PublishRequest& request);
  void leave_once(const LeaveRequest& request);
  void call(Network::Call call);
  void again(Repeating& call, Duration wait, void (Process::*once)());
  Duration until_ask_again(const Repeating& call) const;
  void later(Duration delay, std::function<void()> deed);
  void unreachable(const rendezvous::Unreachable& why);
  void note(const std::string& text);

  Surroundings around_;
  ProcessId id_;
  agent::Config config_;
  WorkerHabits habits_;
  Duration hold_;
  agent::Supervisor supervisor_;
  Repeating join_;
  Repeating watch_;
  JoinRequest join_request_;
  agent::RetryBackoff call_backoff_;
  Generation entered_;  // the newest assignment received
  int leaves_open_ = 0;
  bool is_paused_ = false;
  Instant resumed_at_{};
  std::vector<std::function<void()>> waiting_;
  std::optional<agent::Finish> finish_;
};

}  // namespace lrun::sim
