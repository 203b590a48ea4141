// What the commands of lrun-train do once the worker has its place.
#pragma once

#include "trainer/loop/agent_link.h"
#include "trainer/train/command_line.h"
#include "trainer/train/config.h"
#include "trainer/train/place.h"

namespace lrun::train {

// Trains, validates or tests, and prints the outcome on global rank 0. Returns the exit code: 0, 1
// (the last checkpoint could not be saved) or 128 + n (stopped by signal n). Throws what
// loop::Trainer throws.
int run_command(Command command, const Config& config, Place& place, loop::AgentLink& agent);

}  // namespace lrun::train
