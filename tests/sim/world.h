// A whole job in one address space and in no time: one rendezvous machine, any number of agents'
// supervisors (the production code of both), a network between them, fake workers, a virtual clock.
//
//     agent a ── supervisor ─┐                      ┌─ StateMachine ─ service
//     agent b ── supervisor ─┼── Network (delay, …) ┘
//     workers of a, b …     ─┘        Agenda (time)        Checks (after every step)
//
// Owns all of them and the readable log. Everything is decided by Options::seed and by the
// commands: the same commands give the same log. Called by scenarios (one command a line) and by
// the simulation (commands drawn from a seed). A world never throws for what happens inside; what
// must not happen is found in `violations()`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/events.h"
#include "rendezvous/events.h"

namespace lrun::sim {

// What the network does to each message, while it does anything to them.
struct NetworkWeather {
  Duration delay_min = std::chrono::microseconds(200);
  Duration delay_max = std::chrono::milliseconds(2);
  double lost_request = 0;  // the call is never heard of; the caller's deadline ends it
  double lost_reply = 0;    // the service has acted, the caller does not know
  double duplicate = 0;     // a request arrives twice
  double reset = 0;         // the connection breaks with this message; both ends are told
};

// How the workers of an agent behave.
struct WorkerHabits {
  bool is_live = false;
  // Live, and steps are reported; a plain worker without reports says nothing on its channel.
  bool reports = true;
  // Training steps of the whole job until workers end with 0; none: they run for ever.
  std::optional<std::int64_t> steps{};
  Duration step = std::chrono::milliseconds(200);
  Duration start_up = std::chrono::milliseconds(50);  // from spawn to the first word
  bool ignores_polite_signals = false;
  // A plain worker that notices the end of a peer ends with 1 (else it waits for ever).
  bool victims_exit = true;
  double spawn_failure = 0;   // chance of a spawn to fail
  double crash_per_step = 0;  // chance of a step to end in SIGSEGV
  double slow_to_abort = 0;   // chance that a live worker never answers `abort`
};

enum class Direction { Both, ToService, FromService };

class World {
 public:
  struct Options {
    rendezvous::Config service{};
    // Of every agent; facts and run_id are filled in by `join`.
    agent::Config agent{};
    NetworkWeather weather{};
    WorkerHabits habits{};
    std::uint64_t seed = 1;
    std::uint64_t first_term = 1;
  };
  // The service runs from the start; no agent does.
  explicit World(Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // --- commands -------------------------------------------------------------------------------
  // Each returns at the same instant; `advance` lets time go by. Unknown nodes and dead workers are
  // reported by false, and nothing happens.

  // Starts an agent process on a node; a node without a living one is free.
  bool join(const std::string& node, int slots);
  // As above with this node's own habits (`facts` may carry labels, role, fixed rank).
  bool join(const NodeFacts& facts, const WorkerHabits& habits);
  // `kill -9` of the agent: its workers go with it, its connections are closed by the kernel.
  bool kill_agent(const std::string& node);
  // A worker's process ends by itself.
  bool exit_worker(const std::string& node, int local_rank, agent::ExitStatus status);
  // A worker stands still and says nothing (SIGSTOP).
  bool stop_worker(const std::string& node, int local_rank);
  // A live worker says `failed`.
  bool fail_worker(const std::string& node, int local_rank, const std::string& reason);
  bool garble_worker(const std::string& node, int local_rank);
  // The keeper dies, and all workers of the node with it.
  bool lose_keeper(const std::string& node);
  // A signal reaches the agent.
  bool signal_agent(const std::string& node, int signal_number);
  // The node's machine is paused: agent and workers do nothing, connections stay.
  bool pause(const std::string& node);
  bool resume(const std::string& node);
  // Messages between node and service vanish silently.
  bool partition(const std::string& node, Direction direction = Direction::Both);
  bool heal(const std::string& node);
  void set_weather(const NetworkWeather& weather);
  // From now on no worker crashes, fails to spawn or is slow by its own habits.
  void calm_workers();
  // As people do it with `lrun drain` and `lrun stop`.
  void drain(const std::string& node);
  void stop_job(const std::string& reason);
  // The service's process ends; its memory is lost, calls are refused until `start_service`.
  void kill_service();
  // A new life, with the next term. `restart_service` is both at once.
  void start_service();
  void restart_service();
  // The service's own process stands still for this long from now on.
  void lag_service(Duration lag);

  // Lets this much virtual time pass. False when something was violated (see `violations`).
  bool advance(Duration duration);
  // Until `done` holds, looked at after every step, for at most `limit`. True when it held.
  bool advance_until(const std::function<bool()>& done, Duration limit);

  // --- questions ------------------------------------------------------------------------------

  Duration now() const;  // since the beginning
  // One line an event or action: "[   1.250] a: Joining -> Starting: generation 1.1".
  const std::vector<std::string>& log() const;
  // Off for long simulations: only the hash is kept.
  void keep_log(bool kept);
  std::uint64_t log_hash() const;
  const std::vector<std::string>& violations() const;
  // For expectations of a whole run: the world counts it like one of its own.
  void violate(const std::string& sentence);

  bool is_service_up() const;
  std::optional<rendezvous::Status> status() const;  // none while the service is down
  bool has_agent(const std::string& node) const;     // its process lives
  std::optional<AgentState> agent_state(const std::string& node) const;
  std::optional<Assignment> assignment(const std::string& node) const;
  // Of the node's last agent that finished.
  std::optional<agent::Finish> ended(const std::string& node) const;
  int running_workers(const std::string& node) const;
  // The last step that all workers of some generation have completed.
  std::int64_t committed_step() const;
  std::vector<std::string> nodes() const;
  // Generations that the services published, in order.
  const std::vector<rendezvous::GenerationPublished>& generations() const;
  // One more agent that ended so, for the statistics.
  void count_outcome(Outcome outcome);
  // Counts by name ("worker crashed", "service restarted", …), for the statistics of a run.
  struct Count {
    std::string name;
    std::int64_t count = 0;
  };
  std::vector<Count> counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::sim
