// What the keeper's process does all its life.
//
// Owns the workers' processes: starts, signals and reaps them, ends what a worker leaves behind
// before its exit is reported, and ends everything when the agent is gone. Refuses to know why.
// One thread, one loop; every signal is blocked, SIGCHLD is read from a descriptor.
#pragma once

#include "base/fd.h"

namespace lrun::agent {

// Runs until the agent's end of the connection closes; then ends every descendant, bounded.
void run_keeper(Fd connection);

// Blocks every signal and returns a descriptor on which SIGCHLD is read. For keeper and guard.
Fd block_signals();

}  // namespace lrun::agent
