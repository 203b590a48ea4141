// The binary `lrun`: picks the subcommand; each one lives in a file of its own.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
#include "launcher/addresses.h"
#include "launcher/exit_codes.h"
#include "launcher/run.h"
#include "launcher/run_options.h"
#include "launcher/status_command.h"

extern char** environ;

namespace {

using namespace lrun;
using namespace lrun::launcher;

Environment own_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && equals > 0) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

// Python's level names, as torchrun's LOGLEVEL has them; lrun is silent on success by default.
log::Level level_of(const RunOptions& options, const Environment& environment) {
  const auto variable = environment.find("LOGLEVEL");
  std::string name = options.log_level;
  if (name.empty() && variable != environment.end()) name = variable->second;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "debug") return log::Level::Debug;
  if (name == "info") return log::Level::Info;
  if (name == "error" || name == "critical" || name == "fatal") return log::Level::Error;
  if (!name.empty() && name != "warn" && name != "warning") {
    std::fprintf(stderr,
                 "lrun: LOGLEVEL='%s' is no level; warn is used (error, warn, info, debug)\n",
                 name.c_str());
  }
  return log::Level::Warn;
}

const char* component_of(Role role) { return role == Role::ServiceOnly ? "rendezvous" : "agent"; }

void print_help() {
  std::fputs(
      "usage: lrun [run] [options] PROGRAM [words of the program]\n"
      "       lrun agent [options] PROGRAM ...     this node's part; joins --rdzv-endpoint\n"
      "       lrun rendezvous [options]            the service alone\n"
      "       lrun status [--json]                 how a job stands\n\n"
      "Starts the workers of a training job on this node, finds the other nodes, and brings\n"
      "everything back after a failure. Every option can also be given as LRUN_<NAME>.\n\n",
      stdout);
  std::fputs(help_for(run_option_table(), 80).c_str(), stdout);
}

int run_with(Role role, std::span<const std::string> words, const Environment& environment) {
  const auto parsed = parse_run(words, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    std::fprintf(stderr, "lrun: %s\n", error->sentence.c_str());
    return kExitUsage;
  }
  const auto& command = std::get<RunCommand>(parsed);
  if (command.options.wants_help) {
    print_help();
    return kExitSucceeded;
  }
  if (command.options.wants_version) {
    std::puts("lrun " LRUN_VERSION);
    return kExitSucceeded;
  }
  log::configure(level_of(command.options, environment),
                 command.options.log_format == "json" ? log::Format::Json : log::Format::Logfmt,
                 component_of(role), host_name());
  return run_command(role, command, environment);
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> words(values + 1, values + count);
  const Environment environment = own_environment();
  const std::span<const std::string> all(words);
  if (words.empty()) {
    std::fputs(
        "usage: lrun [options] PROGRAM [words of the program]; `lrun --help` lists the options\n",
        stderr);
    return kExitUsage;
  }
  // A first word that is the exact name of a subcommand is that subcommand.
  const std::string& first = words.front();
  if (first == "status") return status_command(all.subspan(1), environment);
  if (first == "agent") return run_with(Role::AgentOnly, all.subspan(1), environment);
  if (first == "rendezvous") return run_with(Role::ServiceOnly, all.subspan(1), environment);
  if (first == "run") return run_with(Role::Run, all.subspan(1), environment);
  return run_with(Role::Run, all, environment);
}
