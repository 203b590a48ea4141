// What a worker's program is started with: its environment and its arguments.
//
// Pure. Owns torchrun's rules for both; refuses to know processes. Called by agent/workers.
#pragma once

#include <string>
#include <vector>

#include "proto/ids.h"
#include "proto/worker_env.h"

namespace lrun::agent {

// The parent's environment, overlaid with the worker's own variables and torchrun's defaults for
// OMP_NUM_THREADS and TORCH_NCCL_ASYNC_ERROR_HANDLING.
Environment worker_environment(const Environment& parent, const WorkerEnv& worker,
                               const std::string& signals_to_handle);

// Names in the parent's environment that workers will not see with the parent's value (B081).
std::vector<std::string> overridden_names(const Environment& parent);

// True when workers get OMP_NUM_THREADS=1 by default: worth a line for the user.
bool limits_omp_threads(const Environment& parent, int slots);

// In the arguments, not in the program, ${local_rank} and $local_rank become the number.
std::vector<std::string> worker_command(std::vector<std::string> command, LocalRank local_rank);

}  // namespace lrun::agent
