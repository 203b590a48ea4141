// What a scheduler tells about the job: nodes, this node's place, endpoint, run id, slots.
//
// Pure: reads an environment that is handed in. Options and LRUN_/PET_ variables always win over
// what is found here. Today: Slurm. The rules, one by one: docs/slurm.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/option_parser.h"

namespace lrun::launcher {

struct SlurmStep {
  int nodes = 1;
  int node_rank = 0;
  std::vector<std::string> hosts;
  std::string run_id;  // "<job>.<step>[.r<restart>]"
  int first_port = 0;  // of a small range; a taken one means: try the next
  int slots = 1;
};

// First port of the range, its length, and how many ports one step tries.
inline constexpr int kSlurmPortsBegin = 20'000;
inline constexpr int kSlurmPorts = 8'000;
inline constexpr int kSlurmPortTries = 8;

struct NoScheduler {};
// In a job of several nodes but not started by srun: run here alone, with this one warning.
struct OutsideStep {
  std::string warning;
};
using Scheduler = std::variant<NoScheduler, OutsideStep, SlurmStep, UsageError>;

Scheduler detect_scheduler(const Environment& environment);

}  // namespace lrun::launcher
