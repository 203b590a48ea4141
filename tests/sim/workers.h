// Fake workers, plain and live, and the training that they do together.
//
// Owns every worker process of a world, the steps each generation has done together, and the last
// step that all of a generation completed (the "checkpoint" that the next one starts from). Agents
// order (spawn, signal, tell); what happens to a worker comes back as events of its agent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/events.h"
#include "tests/sim/agenda.h"
#include "tests/sim/chronicle.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/world.h"

namespace lrun::sim {

class Workers {
 public:
  // Runs an event in the agent's process (later while its machine is paused).
  using Tell = std::function<void(ProcessId, const agent::Event&)>;
  // Is the machine paused right now? Then its workers do nothing either.
  using IsPaused = std::function<bool(ProcessId)>;

  Workers(Agenda& agenda, Random random, Chronicle& chronicle, Tell tell, IsPaused is_paused);

  // --- orders of agents
  void spawn(ProcessId agent, const WorkerHabits& habits, const agent::SpawnWorker& order);
  void signal(ProcessId agent, LocalRank local_rank, int signal_number);
  void tell(ProcessId agent, LocalRank local_rank, const channel::ToWorker& message);
  // The agent's process is gone, and all its workers with it.
  void agent_died(ProcessId agent);
  // The keeper is: the same, but the agent lives to hear of it. What it orders until then is lost.
  void keeper_died(ProcessId agent);
  // The agent hears of it, and has another keeper.
  void keeper_replaced(ProcessId agent) { without_keeper_.erase(agent); }

  // --- commands; false without such a worker
  bool exit(ProcessId agent, LocalRank local_rank, agent::ExitStatus status);
  bool freeze(ProcessId agent, LocalRank local_rank);
  bool fail(ProcessId agent, LocalRank local_rank, const std::string& reason);
  bool garble(ProcessId agent, LocalRank local_rank);
  // From now on no worker crashes, fails to spawn, or is slow by itself.
  void calm() { is_calm_ = true; }

  int running(ProcessId agent) const;
  bool is_running(ProcessId agent, LocalRank local_rank) const;
  std::int64_t committed_step() const { return committed_; }

 private:
  struct Worker {
    ProcessId agent = 0;
    LocalRank local_rank;
    std::uint64_t pid = 0;
    WorkerHabits habits;
    Generation generation;
    GlobalRank global_rank;
    int world_size = 1;
    bool is_ready = false;  // has its place, and the value that all of its generation agree on
    bool is_frozen = false;
    std::deque<channel::ToWorker> inbox{};  // written to its channel, not yet read
    std::optional<Generation> aborting{};   // live: has read `abort`, not yet left the generation
    std::optional<channel::NewAssignment> next{};  // read meanwhile
    bool is_aborted = false;                       // live: waits for an assignment
    bool is_draining = false;
    std::int64_t step = 0;
    int turn = 0;  // counts its generations, so that an old tick is none of the new one
  };
  using Key = std::pair<ProcessId, int>;
  using Pid = std::uint64_t;

  Worker* find(ProcessId agent, LocalRank local_rank);
  Worker* find(Pid pid);
  // Runs the deed if that process still lives and is neither frozen nor paused (then: later).
  void later(Pid pid, Duration delay, std::function<void(Worker&)> deed);
  void read(Worker& worker);
  void abort_generation(Worker& worker, Generation generation);
  void take_assignment(Worker& worker, const channel::NewAssignment& assigned);
  void begin(Worker& worker);
  void enter(Worker& worker);
  void tick(Worker& worker, int turn);
  void tick_later(const Worker& worker);
  void take_step(Worker& worker);
  void lost_peer(Worker& worker, GlobalRank peer);
  void report(Worker& worker, channel::Activity activity, std::optional<GlobalRank> peer);
  void say(const Worker& worker, const channel::FromWorker& message);
  void end(Worker& worker, agent::ExitStatus status);
  void die_politely(Worker& worker, int signal_number);

  // What the members of one generation know of each other.
  struct Group {
    std::map<int, std::int64_t> steps;  // by global rank
    std::set<int> finished;
    std::optional<int> lost;  // the first that ended without finishing
  };
  void leave_group(const Worker& worker, bool finished);

  Agenda& agenda_;
  Random random_;
  Chronicle& chronicle_;
  Tell tell_;
  IsPaused is_paused_;
  bool is_calm_ = false;
  Pid last_pid_ = 1000;
  std::int64_t committed_ = 0;
  std::map<Key, Worker> workers_;
  std::map<Pid, Key> by_pid_;
  std::map<Generation, Group> groups_;
  std::set<ProcessId> without_keeper_;
};

}  // namespace lrun::sim
