// Which words are executed for a worker: the program beside lrun, on PATH, or through Python.
//
// Owns the search and its error lines; nothing is started here. Rules: docs/torchrun.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/option_parser.h"
#include "launcher/run_options.h"

namespace lrun::launcher {

// The full command of a worker: an absolute or PATH-resolved program and its words, in which
// `${local_rank}` is still to be replaced. Errors: not found, a folder, not executable, no Python.
std::variant<std::vector<std::string>, UsageError> resolve_program(const RunCommand& command,
                                                                   const Environment& environment);

// The folder of the running binary.
std::string own_folder();

}  // namespace lrun::launcher
