// The command line of lrun-train.
//
// Pure. `lrun-train fit|validate|test [--config FILE] [--print-config] [KEY=VALUE …]`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lrun::train {

enum class Command { Fit, Validate, Test, PrintConfig, Help, Version };

struct CommandLine {
  Command command = Command::Help;
  std::filesystem::path config;  // empty: defaults
  std::vector<std::string> overrides;
};

// `arguments` without the program's name. Throws loop::UsageError.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

// What --help prints.
std::string help_text();

}  // namespace lrun::train
