// One seed from beginning to end: faults at random, then everything mends, then the job must
// recover within its bound and end for a stated reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/seed_plan.h"
#include "tests/sim/world.h"

namespace lrun::sim {

struct SimulationResult {
  std::vector<std::string> violations;
  std::vector<std::string> log;  // only when asked for
  std::vector<World::Count> counts;
  std::uint64_t log_hash = 0;
  Duration virtual_time{};
  std::size_t generations = 0;
};

SimulationResult simulate(std::uint64_t seed, bool keep_log);

}  // namespace lrun::sim
