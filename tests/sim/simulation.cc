#include "tests/sim/simulation.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <utility>

namespace lrun::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool keep_log)
      : plan_(plan_of(seed)), random_(seed ^ 0x5eedU), world_(plan_.options) {
    world_.keep_log(keep_log);
  }

  SimulationResult run() {
    for (const NodeFacts& facts : plan_.nodes) {
      planned_.emplace(random_.between(Duration::zero(), Duration(seconds(1))),
                       [this, facts] { start(facts); });
    }
    for (const FaultRate& rate : plan_.faults) plan_fault(rate, Duration::zero());
    run_plan();
    mend();
    expect_recovery();
    expect_end();
    return {.violations = world_.violations(),
            .log = world_.log(),
            .counts = world_.counts(),
            .log_hash = world_.log_hash(),
            .virtual_time = world_.now(),
            .generations = world_.generations().size()};
  }

 private:
  void start(const NodeFacts& facts) { world_.join(facts, plan_.options.habits); }

  // Commands that follow from an earlier one (an end to a pause) come even after the last fault.
  void run_plan() {
    while (!planned_.empty() && world_.violations().empty()) {
      const auto next = planned_.begin();
      if (next->first > plan_.faulty_for) break;
      world_.advance(std::max(next->first - world_.now(), Duration::zero()));
      const std::function<void()> deed = std::move(next->second);
      planned_.erase(next);
      deed();
    }
  }

  void plan_fault(const FaultRate& rate, Duration from) {
    const Duration wait = random_.between(Duration::zero(), 2 * rate.every);
    planned_.emplace(from + wait, [this, rate, at = from + wait] {
      strike(rate.fault);
      plan_fault(rate, at);
    });
  }
  void later(Duration least, Duration most, std::function<void()> deed) {
    planned_.emplace(world_.now() + random_.between_logarithmic(least, most), std::move(deed));
  }

  const NodeFacts& any_node() { return plan_.nodes[random_.below(plan_.nodes.size())]; }

  void strike(Fault fault) {
    const NodeFacts& facts = any_node();
    const std::string& node = facts.node.value;
    const int slot = static_cast<int>(random_.below(static_cast<std::uint64_t>(facts.slots)));
    switch (fault) {
      case Fault::KillAgent:
        if (!world_.kill_agent(node)) return;
        return later(milliseconds(10), seconds(20), [this, facts] { start(facts); });
      case Fault::EndWorker:
        return end_worker(node, slot);
      case Fault::StopWorker:
        if (world_.stop_worker(node, slot)) broken_.emplace_back(node, slot);
        return;
      case Fault::FailWorker:
        if (plan_.options.habits.is_live) world_.fail_worker(node, slot, "loss is not finite");
        return;
      case Fault::GarbleWorker:
        if (world_.garble_worker(node, slot)) broken_.emplace_back(node, slot);
        return;
      case Fault::LoseKeeper:
        world_.lose_keeper(node);
        return;
      case Fault::SignalAgent:
        world_.signal_agent(node, SIGTERM);
        return;
      case Fault::Drain:
        return world_.drain(node);
      case Fault::PauseNode:
        if (!world_.pause(node)) return;
        return later(milliseconds(10), 3 * plan_.options.service.lease,
                     [this, node] { world_.resume(node); });
      case Fault::Partition:
        return partition(node);
      case Fault::KillService:
        world_.kill_service();
        return later(milliseconds(1), seconds(20), [this] { world_.start_service(); });
      case Fault::LagService:
        return world_.lag_service(
            random_.between_logarithmic(milliseconds(10), plan_.options.service.lease));
    }
  }

  void end_worker(const std::string& node, int slot) {
    static constexpr int kSignals[] = {SIGKILL, SIGSEGV, SIGABRT, SIGINT};
    agent::ExitStatus status{.by_signal = random_.chance(0.5), .code = 1};
    if (status.by_signal) {
      status.code = kSignals[random_.below(std::size(kSignals))];
      status.out_of_memory = status.code == SIGKILL && random_.chance(0.3);
    } else {
      status.code = static_cast<int>(random_.between(1, 255));
    }
    world_.exit_worker(node, slot, status);
  }

  void partition(const std::string& node) {
    static constexpr Direction kDirections[] = {Direction::Both, Direction::ToService,
                                                Direction::FromService};
    world_.partition(node, kDirections[random_.below(std::size(kDirections))]);
    later(milliseconds(50), 4 * plan_.options.service.lease, [this, node] { world_.heal(node); });
  }

  // The last fault is over: everything that is not the job's own doing is in order again.
  void mend() {
    world_.advance(std::max(plan_.faulty_for - world_.now(), Duration::zero()));
    world_.start_service();
    world_.calm_workers();
    NetworkWeather calm;
    calm.delay_max = milliseconds(2);
    world_.set_weather(calm);
    for (const NodeFacts& facts : plan_.nodes) {
      world_.heal(facts.node.value);
      world_.resume(facts.node.value);
    }
    // Nobody notices a worker that stands still before its first report, or one whose word about
    // the meeting is not trusted any more: the user does.
    for (const auto& [node, slot] : broken_) {
      world_.exit_worker(node, slot, {.by_signal = true, .code = SIGKILL});
    }
    if (is_closed()) return;
    for (const NodeFacts& facts : plan_.nodes) {
      // Whoever was told to go, or gave up, does not come back by itself.
      if (!world_.ended(facts.node.value)) start(facts);
    }
  }

  bool is_closed() const {
    const auto status = world_.status();
    return status && status->phase == rendezvous::Phase::Closed;
  }

  Duration recovery_bound() const {
    const rendezvous::Config& service = plan_.options.service;
    const Duration backoff_max = seconds(30);  // rendezvous/budget
    const Duration rejoin_max = seconds(5);    // agent: between refused joins
    return service.lease * 2 + service.last_call + service.kill_grace * 2 + backoff_max +
           rejoin_max + 2 * service.heartbeat + plan_.options.habits.start_up + seconds(2);
  }

  // Every living agent up to max_nodes runs one generation, or the job is over.
  bool has_recovered() const {
    const auto status = world_.status();
    const std::vector<std::string> nodes = world_.nodes();
    if (nodes.empty() || status->phase == rendezvous::Phase::Closed) return true;
    if (std::cmp_less(nodes.size(), plan_.options.service.min_nodes)) return true;
    if (status->phase != rendezvous::Phase::Active) return false;
    int running = 0;
    bool finishing = false;
    for (const std::string& node : nodes) {
      const auto state = world_.agent_state(node);
      const bool is_current =
          world_.assignment(node) && world_.assignment(node)->generation == status->generation;
      finishing = finishing || state == AgentState::Finished;
      if (is_current && (state == AgentState::Running || state == AgentState::Finished)) ++running;
    }
    const int wanted = std::min(static_cast<int>(nodes.size()), plan_.options.service.max_nodes);
    return running >= wanted || finishing;
  }

  void expect_recovery() {
    if (!world_.violations().empty()) return;
    if (!world_.advance_until([this] { return has_recovered(); }, recovery_bound())) {
      world_.violate("no recovery within its bound after the last fault");
    }
    if (plan_.service_alone && world_.generations().size() > 1) {
      world_.violate("a restart of the service alone changed the generation");
    }
  }

  // Workers end by themselves after their steps, so every agent must end, and say why.
  void expect_end() {
    if (!world_.violations().empty()) return;
    const auto all_over = [this] { return world_.nodes().empty(); };
    const std::int64_t steps = *plan_.options.habits.steps;
    const Duration training = plan_.options.habits.step * (steps * 3) + seconds(30);
    bool is_over =
        world_.advance_until(all_over, recovery_bound() + 2 * (training + recovery_bound()));
    // With too few nodes left, those that wait go when their join times out.
    if (!is_over && std::cmp_less(world_.nodes().size(), plan_.options.service.min_nodes)) {
      is_over = world_.advance_until(all_over, plan_.options.service.join_timeout + seconds(60));
    }
    if (!is_over) {
      return world_.violate("agents are still there long after training must have ended");
    }
    for (const NodeFacts& facts : plan_.nodes) expect_reason(facts.node.value);
  }

  void expect_reason(const std::string& node) {
    const auto end = world_.ended(node);
    if (!end) return;  // killed, and the job was over before it came back
    world_.count_outcome(end->outcome);
    const bool has_reason = end->outcome == Outcome::Succeeded || end->cause || end->refusal ||
                            end->stopped_by_signal || end->outcome == Outcome::Stopped;
    if (!has_reason) world_.violate(node + " ended without a stated reason");
    if (end->outcome == Outcome::Succeeded &&
        world_.committed_step() < *plan_.options.habits.steps) {
      world_.violate(node + " succeeded although training is not done");
    }
  }

  SeedPlan plan_;
  Random random_;
  World world_;
  std::multimap<Duration, std::function<void()>> planned_;
  std::vector<std::pair<std::string, int>> broken_;
};

}  // namespace

SimulationResult simulate(std::uint64_t seed, bool keep_log) {
  return Simulation(seed, keep_log).run();
}

}  // namespace lrun::sim
