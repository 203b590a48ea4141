// Worlds of connected ranks for tests: as threads of this process, or as processes of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trainer/comm/comm.h"

namespace lrun::parallel {

// Runs `body` once for each rank, each on its own thread with its own Comm and one compute thread,
// and waits for all. Throws what the lowest rank threw.
void run_world(int world_size, const std::function<void(comm::Comm&)>& body);

// The same with forked processes, so that each has its own random generator. Returns each rank's
// text, in rank order; throws std::runtime_error with the sentence of a rank that failed. The
// calling process must not have computed anything with LibTorch yet: a child must not inherit a
// thread pool.
std::vector<std::string> run_processes(int world_size,
                                       const std::function<std::string(comm::Comm&)>& body);

}  // namespace lrun::parallel
