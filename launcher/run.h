// `lrun run`, `lrun agent`, `lrun rendezvous`: one process of a job, from options to exit code.
//
// Owns the long-lived objects and the order of their lives: keeper, loop, service, link, agent,
// metrics. Decides nothing about the job: the two state machines do.
#pragma once

#include "launcher/place.h"
#include "launcher/run_options.h"
#include "proto/worker_env.h"

namespace lrun::launcher {

// Runs until the job or this node's part of it is over; returns the exit code.
int run_command(Role role, const RunCommand& command, const Environment& environment);

}  // namespace lrun::launcher
