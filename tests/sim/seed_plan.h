// What a seed stands for: the job, the weather, the workers' habits, and which faults how often.
//
// Swarm testing (Groce et al. 2012): each seed draws a random subset of the faults with wildly
// different weights, so that rare combinations get seeds in which nothing else hides them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/random.h"
#include "tests/sim/world.h"

namespace lrun::sim {

enum class Fault {
  KillAgent,
  EndWorker,
  StopWorker,
  FailWorker,
  GarbleWorker,
  LoseKeeper,
  SignalAgent,
  Drain,
  PauseNode,
  Partition,
  KillService,
  LagService,
};

// One kind of fault and the mean time between two of it.
struct FaultRate {
  Fault fault = Fault::KillAgent;
  Duration every{};
};

struct SeedPlan {
  World::Options options;
  std::vector<NodeFacts> nodes;
  std::vector<FaultRate> faults;
  Duration faulty_for{};  // afterwards everything mends
  // Only the service fails, and nothing else: the generation must stay the same.
  bool service_alone = false;
};

SeedPlan plan_of(std::uint64_t seed);

}  // namespace lrun::sim
