#include "trainer/train/command_line.h"

#include <optional>

#include "trainer/loop/errors.h"

namespace lrun::train {
namespace {

using loop::UsageError;

std::optional<Command> subcommand(const std::string& word) {
  if (word == "fit") return Command::Fit;
  if (word == "validate") return Command::Validate;
  if (word == "test") return Command::Test;
  return std::nullopt;
}

// The value of --config FILE or --config=FILE.
std::string option_value(const std::vector<std::string>& arguments, std::size_t* index) {
  const std::string& argument = arguments[*index];
  const std::size_t equals = argument.find('=');
  if (equals != std::string::npos) return argument.substr(equals + 1);
  if (*index + 1 == arguments.size()) throw UsageError("option --config needs a file");
  return arguments[++*index];
}

void set_command(CommandLine* line, Command command) {
  // --help, --version and --print-config win over what they stand beside.
  const bool is_subcommand =
      command == Command::Fit || command == Command::Validate || command == Command::Test;
  const bool is_open = line->command == Command::Help;
  if (!is_subcommand || is_open) line->command = command;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  bool has_command = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h")
      return {.command = Command::Help, .config = {}, .overrides = {}};
    if (argument == "--version")
      return {.command = Command::Version, .config = {}, .overrides = {}};
    if (argument == "--print-config") {
      set_command(&line, Command::PrintConfig);
      has_command = true;
    } else if (argument == "--config" || argument.starts_with("--config=")) {
      line.config = option_value(arguments, &i);
    } else if (argument.starts_with("-")) {
      throw UsageError("unknown option " + argument +
                       "; accepted: --config FILE, --print-config, --help, --version");
    } else if (argument.find('=') != std::string::npos) {
      line.overrides.push_back(argument);
    } else if (const auto command = subcommand(argument);
               command && line.command == Command::Help) {
      set_command(&line, *command);
      has_command = true;
    } else if (!command) {
      throw UsageError("unknown argument '" + argument +
                       "'; accepted: fit, validate, test, or KEY=VALUE");
    } else if (line.command != Command::PrintConfig) {
      throw UsageError("two commands are given; accepted: one of fit, validate, test");
    }
  }
  if (!has_command)
    throw UsageError("no command is given; accepted: fit, validate, test (see --help)");
  return line;
}

std::string help_text() {
  return R"(Usage: lrun-train COMMAND [--config FILE] [KEY=VALUE ...]

Trains a model on one worker, or on many when started by lrun:

  lrun-train fit --config fashion_mnist.yaml
  lrun --standalone --nproc 4 lrun-train fit --config fashion_mnist.yaml trainer.max_epochs=2

Commands:
  fit        train, or go on with an interrupted run in the same folder; then test
  validate   evaluate the newest checkpoint on the held-out training data
  test       evaluate the newest checkpoint on the test data

Options:
  --config FILE    YAML file; without it all keys have their defaults
  KEY=VALUE        overrides a key of the file, such as optimizer.lr=0.001
  --print-config   print the whole configuration and exit
  --version, --help

Exit codes: 0 done; 1 failed while running; 2 wrong usage, configuration, data set or checkpoint;
128 + n stopped by signal n after saving a checkpoint.
)";
}

}  // namespace lrun::train
