#include "tests/sim/seed_plan.h"

namespace lrun::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Fault kAllFaults[] = {Fault::KillAgent,   Fault::EndWorker,    Fault::StopWorker,
                                Fault::FailWorker,  Fault::GarbleWorker, Fault::LoseKeeper,
                                Fault::SignalAgent, Fault::Drain,        Fault::PauseNode,
                                Fault::Partition,   Fault::KillService,  Fault::LagService};

void draw_job(Random& random, SeedPlan& plan) {
  const auto nodes = static_cast<int>(random.between(1, 5));
  rendezvous::Config& service = plan.options.service;
  service.run_id = "simulated";
  service.min_nodes = static_cast<int>(random.between(1, nodes));
  service.max_nodes = static_cast<int>(random.between(service.min_nodes, nodes));
  service.max_restarts = static_cast<int>(random.between(0, 12));
  service.lease = random.between_logarithmic(seconds(2), seconds(10));
  service.heartbeat = service.lease / 5;
  service.last_call = random.between_logarithmic(milliseconds(200), seconds(5));
  service.kill_grace = random.between_logarithmic(milliseconds(500), seconds(10));
  service.hold = random.between_logarithmic(seconds(2), seconds(20));
  service.may_have_predecessor = random.chance(0.3);
  for (int index = 0; index < nodes; ++index) {
    NodeFacts facts;
    facts.node = NodeId{"n" + std::to_string(index)};
    facts.slots = static_cast<int>(random.between(1, 3));
    plan.nodes.push_back(facts);
  }
  agent::Config& agent = plan.options.agent;
  agent.max_restarts = service.max_restarts;
  agent.kill_grace = service.kill_grace;
  agent.heartbeat = service.heartbeat;
  agent.lease = service.lease;
  if (random.chance(0.5)) agent.stall_timeout = random.between(seconds(3), seconds(10));
}

void draw_habits(Random& random, SeedPlan& plan) {
  WorkerHabits& habits = plan.options.habits;
  habits.is_live = random.chance(0.5);
  habits.reports = random.chance(0.7);
  habits.step = random.between_logarithmic(milliseconds(50), milliseconds(1000));
  habits.steps = random.between(20, 80);
  habits.start_up = random.between_logarithmic(milliseconds(1), milliseconds(1000));
  habits.ignores_polite_signals = random.chance(0.2);
  habits.victims_exit = random.chance(0.7);
  if (random.chance(0.3)) habits.spawn_failure = random.between_logarithmic(0.001, 0.2);
  if (random.chance(0.3)) habits.crash_per_step = random.between_logarithmic(0.0005, 0.02);
  if (random.chance(0.3)) habits.slow_to_abort = random.between_logarithmic(0.01, 0.5);
}

void draw_weather(Random& random, SeedPlan& plan) {
  NetworkWeather& weather = plan.options.weather;
  // A third of the lease is the margin that fencing has; a network beyond it is a partition.
  weather.delay_max = random.between_logarithmic(milliseconds(1), plan.options.service.lease / 12);
  weather.delay_min = weather.delay_max / 10;
  if (random.chance(0.4)) weather.lost_request = random.between_logarithmic(0.001, 0.2);
  if (random.chance(0.4)) weather.lost_reply = random.between_logarithmic(0.001, 0.2);
  if (random.chance(0.4)) weather.duplicate = random.between_logarithmic(0.001, 0.3);
  if (random.chance(0.4)) weather.reset = random.between_logarithmic(0.0005, 0.05);
}

void draw_faults(Random& random, SeedPlan& plan) {
  plan.faulty_for = random.between(seconds(10), seconds(60));
  for (const Fault fault : kAllFaults) {
    if (!random.chance(0.35)) continue;
    // Ends a node's part in the job for good: seldom, or nothing is left to look at.
    const bool is_final = fault == Fault::SignalAgent || fault == Fault::Drain;
    const Duration least = is_final ? seconds(15) : milliseconds(500);
    plan.faults.push_back({fault, random.between_logarithmic(least, seconds(60))});
  }
}

}  // namespace

SeedPlan plan_of(std::uint64_t seed) {
  Random random(seed);
  SeedPlan plan;
  plan.options.seed = random.next();
  draw_job(random, plan);
  draw_habits(random, plan);
  plan.service_alone = random.chance(0.05);
  if (plan.service_alone) {
    plan.options.habits.spawn_failure = 0;
    plan.options.habits.crash_per_step = 0;
    plan.options.agent.stall_timeout.reset();
    plan.options.service.max_nodes = static_cast<int>(plan.nodes.size());
    plan.options.service.min_nodes = plan.options.service.max_nodes;
    plan.options.habits.steps = 400;
    plan.faulty_for = random.between(seconds(10), seconds(60));
    plan.faults.push_back(
        {Fault::KillService, random.between_logarithmic(seconds(1), seconds(30))});
  } else {
    draw_weather(random, plan);
    draw_faults(random, plan);
  }
  return plan;
}

}  // namespace lrun::sim
