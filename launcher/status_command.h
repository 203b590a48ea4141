// `lrun status [--json]`: how a job stands, asked of its rendezvous.
#pragma once

#include <span>
#include <string>

#include "proto/worker_env.h"

namespace lrun::launcher {

// Prints to stdout and returns the exit code: 0 healthy or succeeded, 1 failed or below MIN,
// 2 usage, 3 no service within --timeout.
int status_command(std::span<const std::string> words, const Environment& environment);

}  // namespace lrun::launcher
