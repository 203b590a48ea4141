#include "tests/sim/workers.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace lrun::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kReap = milliseconds(1);      // from the end of a process to the agent's notice
constexpr Duration kStarting = milliseconds(2);  // from the order to the process
constexpr Duration kPauseLook = milliseconds(20);  // a paused machine's workers look again

const std::string kMeetingKey = "meeting";

agent::ExitStatus by_signal(int number) {
  return agent::ExitStatus{.by_signal = true, .code = number};
}

}  // namespace

Workers::Workers(Agenda& agenda, Random random, Chronicle& chronicle, Tell tell, IsPaused is_paused)
    : agenda_(agenda),
      random_(random),
      chronicle_(chronicle),
      tell_(std::move(tell)),
      is_paused_(std::move(is_paused)) {}

Workers::Worker* Workers::find(ProcessId agent, LocalRank local_rank) {
  const auto found = workers_.find({agent, local_rank.value});
  return found == workers_.end() ? nullptr : &found->second;
}

Workers::Worker* Workers::find(Pid pid) {
  const auto found = by_pid_.find(pid);
  return found == by_pid_.end() ? nullptr : &workers_.at(found->second);
}

void Workers::later(Pid pid, Duration delay, std::function<void(Worker&)> deed) {
  agenda_.after(delay, [this, pid, deed = std::move(deed)] {
    Worker* worker = find(pid);
    if (worker == nullptr || worker->is_frozen) return;
    if (is_paused_(worker->agent)) return later(pid, kPauseLook, deed);
    deed(*worker);
  });
}

// --- orders ------------------------------------------------------------------------------------

void Workers::spawn(ProcessId agent, const WorkerHabits& habits, const agent::SpawnWorker& order) {
  const LocalRank local_rank = order.local_rank;
  if (without_keeper_.contains(agent)) return;
  if (!is_calm_ && random_.chance(habits.spawn_failure)) {
    chronicle_.count("spawn failed");
    agenda_.after(kStarting, [this, agent, local_rank] {
      tell_(agent, agent::SpawnFailed{local_rank, "Resource temporarily unavailable"});
    });
    return;
  }
  if (is_running(agent, local_rank)) {
    chronicle_.violation(agenda_.now(), "a worker was started while its predecessor ran");
    return;
  }
  Worker worker{.agent = agent,
                .local_rank = local_rank,
                .pid = ++last_pid_,
                .habits = habits,
                .generation = order.environment.generation,
                .global_rank = order.environment.global_rank,
                .world_size = order.environment.world_size};
  const Pid pid = worker.pid;
  by_pid_[pid] = {agent, local_rank.value};
  workers_[{agent, local_rank.value}] = std::move(worker);
  agenda_.after(kStarting, [this, agent, local_rank, pid] {
    tell_(agent, agent::WorkerSpawned{local_rank, static_cast<int>(pid)});
  });
  later(pid, kStarting + habits.start_up, [this](Worker& started) { begin(started); });
}

void Workers::begin(Worker& worker) {
  if (worker.habits.is_live || worker.habits.reports) {
    say(worker, channel::Hello{.live = worker.habits.is_live});
  }
  enter(worker);
}

// Takes its place in its generation. With a channel it first meets the others on the blackboard, as
// communicators do; rank 0 says where.
void Workers::enter(Worker& worker) {
  worker.step = committed_;
  worker.is_aborted = false;
  worker.is_ready = false;
  Group& group = groups_[worker.generation];
  group.steps[worker.global_rank.value] = worker.step;
  const bool has_channel = worker.habits.is_live || worker.habits.reports;
  if (has_channel) {
    if (worker.global_rank.value == 0) {
      say(worker, channel::PublishValue{kMeetingKey, to_string(worker.generation)});
    }
    say(worker, channel::LookupValue{kMeetingKey});
  } else {
    worker.is_ready = true;
  }
  ++worker.turn;
  tick_later(worker);
}

void Workers::tick_later(const Worker& worker) {
  later(worker.pid, worker.habits.step,
        [this, turn = worker.turn](Worker& one) { tick(one, turn); });
}

void Workers::signal(ProcessId agent, LocalRank local_rank, int signal_number) {
  Worker* worker = find(agent, local_rank);
  if (worker == nullptr) return;
  if (signal_number == SIGKILL) return end(*worker, by_signal(SIGKILL));
  die_politely(*worker, signal_number);
}

void Workers::die_politely(Worker& worker, int signal_number) {
  if (worker.habits.ignores_polite_signals) return;
  later(worker.pid, random_.between(milliseconds(1), milliseconds(20)),
        [this, signal_number](Worker& one) { end(one, by_signal(signal_number)); });
}

void Workers::tell(ProcessId agent, LocalRank local_rank, const channel::ToWorker& message) {
  Worker* worker = find(agent, local_rank);
  if (worker == nullptr) return;
  worker->inbox.push_back(message);
  later(worker->pid, milliseconds(1), [this](Worker& one) { read(one); });
}

// One message for each that was sent, in the order in which they were.
void Workers::read(Worker& worker) {
  const channel::ToWorker message = std::move(worker.inbox.front());
  worker.inbox.pop_front();
  if (const auto* assigned = std::get_if<channel::NewAssignment>(&message)) {
    if (worker.aborting) {
      worker.next = *assigned;
    } else {
      take_assignment(worker, *assigned);
    }
  } else if (const auto* abort = std::get_if<channel::Abort>(&message)) {
    abort_generation(worker, abort->generation);
  } else if (const auto* value = std::get_if<channel::Value>(&message)) {
    if (value->value != to_string(worker.generation)) {
      chronicle_.violation(agenda_.now(), "worker of generation " + to_string(worker.generation) +
                                              " was given the value of " + value->value);
    }
    worker.is_ready = true;
  } else if (std::holds_alternative<channel::Drain>(message)) {
    worker.is_draining = true;
    if (worker.is_aborted) end(worker, {});
  } else if (!worker.habits.ignores_polite_signals) {
    end(worker, {});
  }
}

// It takes a while to leave a communicator, and what it says before it has belongs to the old
// generation, whatever its agent was told meanwhile.
void Workers::abort_generation(Worker& worker, Generation generation) {
  if (!is_calm_ && random_.chance(worker.habits.slow_to_abort)) {
    chronicle_.count("abort not answered");
    worker.is_frozen = true;
    return;
  }
  worker.is_aborted = true;
  worker.next.reset();  // it was for the generation that is over now
  if (std::exchange(worker.aborting, generation)) return;
  const Duration took = random_.between(Duration::zero(), worker.habits.step);
  later(worker.pid, took, [this](Worker& one) {
    const Generation left = *std::exchange(one.aborting, std::nullopt);
    say(one, channel::PublishValue{kMeetingKey, to_string(left)});
    say(one, channel::LookupValue{kMeetingKey});
    say(one, channel::Aborted{left});
    if (const auto next = std::exchange(one.next, std::nullopt)) take_assignment(one, *next);
  });
}

void Workers::take_assignment(Worker& worker, const channel::NewAssignment& assigned) {
  worker.generation = assigned.generation;
  worker.global_rank = assigned.global_rank;
  worker.world_size = assigned.world_size;
  enter(worker);
}

void Workers::agent_died(ProcessId agent) {
  auto at = workers_.lower_bound({agent, -1});
  while (at != workers_.end() && at->first.first == agent) {
    leave_group(at->second, false);
    by_pid_.erase(at->second.pid);
    at = workers_.erase(at);
  }
}

void Workers::keeper_died(ProcessId agent) {
  agent_died(agent);
  if (!without_keeper_.insert(agent).second) return;
  agenda_.after(kReap, [this, agent] { tell_(agent, agent::KeeperLost{}); });
}

// --- training ----------------------------------------------------------------------------------

void Workers::tick(Worker& worker, int turn) {
  if (worker.is_aborted || turn != worker.turn) return;  // a new assignment starts it again
  const Pid pid = worker.pid;
  const bool is_live = worker.habits.is_live;
  Group& group = groups_[worker.generation];
  if (worker.is_draining) return end(worker, {});
  if (group.lost) {
    lost_peer(worker, GlobalRank{*group.lost});  // which may be its end
    if (is_live) return;
  } else if (worker.is_ready) {
    take_step(worker);
  } else {
    report(worker, channel::Activity::Waiting, GlobalRank{0});
  }
  if (find(pid) != nullptr) tick_later(worker);
}

void Workers::take_step(Worker& worker) {
  Group& group = groups_[worker.generation];
  for (int rank = 0; rank < worker.world_size; ++rank) {
    const auto peer = group.steps.find(rank);
    const bool is_behind = peer == group.steps.end() || peer->second < worker.step;
    if (is_behind && !group.finished.contains(rank)) {
      return report(worker, channel::Activity::Waiting, GlobalRank{rank});
    }
  }
  if (worker.habits.steps && worker.step >= *worker.habits.steps) {
    committed_ = std::max(committed_, worker.step);
    return end(worker, {});
  }
  if (!is_calm_ && random_.chance(worker.habits.crash_per_step)) {
    chronicle_.count("worker crashed");
    return end(worker, by_signal(SIGSEGV));
  }
  committed_ = std::max(committed_, worker.step);  // all have reached it
  group.steps[worker.global_rank.value] = ++worker.step;
  report(worker, channel::Activity::Computing, std::nullopt);
}

void Workers::lost_peer(Worker& worker, GlobalRank peer) {
  if (worker.habits.is_live) {
    say(worker, channel::Failed{.reason = "connection reset by peer", .peer = peer});
  } else if (worker.habits.victims_exit) {
    end(worker, agent::ExitStatus{.code = 1});
  }
}

void Workers::report(Worker& worker, channel::Activity activity, std::optional<GlobalRank> peer) {
  if (!worker.habits.reports && !worker.habits.is_live) return;
  say(worker, channel::Progress{.step = worker.step,
                                .samples = worker.step * 32,
                                .activity = activity,
                                .peer = peer,
                                .samples_per_second = 100});
}

void Workers::say(const Worker& worker, const channel::FromWorker& message) {
  tell_(worker.agent, agent::WorkerSaid{worker.local_rank, message});
}

// --- ends --------------------------------------------------------------------------------------

void Workers::leave_group(const Worker& worker, bool finished) {
  const auto found = groups_.find(worker.generation);
  if (found == groups_.end()) return;
  const int rank = worker.global_rank.value;
  if (finished) {
    found->second.finished.insert(rank);
  } else if (!found->second.lost) {
    found->second.lost = rank;
  }
}

void Workers::end(Worker& worker, agent::ExitStatus status) {
  const ProcessId agent = worker.agent;
  const LocalRank local_rank = worker.local_rank;
  leave_group(worker, status.is_success() && !worker.is_draining);
  by_pid_.erase(worker.pid);
  workers_.erase({agent, local_rank.value});
  agenda_.after(kReap, [this, agent, local_rank, status] {
    tell_(agent, agent::WorkerExited{local_rank, status, ""});
  });
}

bool Workers::exit(ProcessId agent, LocalRank local_rank, agent::ExitStatus status) {
  Worker* worker = find(agent, local_rank);
  if (worker == nullptr) return false;
  end(*worker, status);
  return true;
}

bool Workers::freeze(ProcessId agent, LocalRank local_rank) {
  Worker* worker = find(agent, local_rank);
  if (worker == nullptr) return false;
  worker->is_frozen = true;
  return true;
}

bool Workers::fail(ProcessId agent, LocalRank local_rank, const std::string& reason) {
  Worker* worker = find(agent, local_rank);
  if (worker == nullptr) return false;
  say(*worker, channel::Failed{.reason = reason, .peer = {}});
  return true;
}

bool Workers::garble(ProcessId agent, LocalRank local_rank) {
  if (find(agent, local_rank) == nullptr) return false;
  tell_(agent, agent::WorkerGarbled{local_rank, "not a JSON object"});
  return true;
}

int Workers::running(ProcessId agent) const {
  int count = 0;
  auto at = workers_.lower_bound({agent, -1});
  for (; at != workers_.end() && at->first.first == agent; ++at) ++count;
  return count;
}

bool Workers::is_running(ProcessId agent, LocalRank local_rank) const {
  return workers_.contains({agent, local_rank.value});
}

}  // namespace lrun::sim
