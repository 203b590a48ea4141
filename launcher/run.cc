#include "launcher/run.h"

#include <cstdio>
#include <stdexcept>

#include "agent/run_folder.h"
#include "launcher/agent_process.h"
#include "launcher/exit_codes.h"
#include "launcher/local_nodes.h"
#include "launcher/program.h"
#include "launcher/service_process.h"

namespace lrun::launcher {
namespace {

int usage(const std::string& sentence) {
  std::fprintf(stderr, "lrun: %s\n", sentence.c_str());
  return kExitUsage;
}

int run_agent(const RunCommand& command, Place place, const Environment& environment) {
  auto program = resolve_program(command, environment);
  if (auto* error = std::get_if<UsageError>(&program)) return usage(error->sentence);
  AgentProcess process(command, std::move(place), std::get<std::vector<std::string>>(program),
                       environment);
  return process.run();
}

// N agents on one machine: checks what each would check, then starts them around one service.
int run_local_nodes(const RunCommand& command, Place place, const Environment& environment) {
  const auto program = resolve_program(command, environment);
  if (const auto* error = std::get_if<UsageError>(&program)) return usage(error->sentence);
  LocalNodes nodes(command, std::move(place));
  return nodes.run();
}

int run_placed(Role role, const RunCommand& command, const Environment& environment) {
  const Scheduler scheduler = detect_scheduler(environment);
  if (const auto* error = std::get_if<UsageError>(&scheduler)) return usage(error->sentence);
  auto chosen = choose_place(command.options, role, scheduler, command.program);
  if (auto* error = std::get_if<UsageError>(&chosen)) return usage(error->sentence);
  Place& place = std::get<Place>(chosen);
  if (!place.warning.empty()) std::fprintf(stderr, "lrun: %s\n", place.warning.c_str());
  if (role == Role::ServiceOnly) return ServiceProcess(command.options, std::move(place)).run();
  if (command.options.standalone && place.nodes.max > 1) {
    return run_local_nodes(command, std::move(place), environment);
  }
  return run_agent(command, std::move(place), environment);
}

}  // namespace

int run_command(Role role, const RunCommand& command, const Environment& environment) {
  if (role != Role::ServiceOnly && command.program.empty()) {
    return usage("no program was given; write: lrun [options] PROGRAM [words of the program]");
  }
  if (role == Role::ServiceOnly && !command.program.empty()) {
    return usage("lrun rendezvous runs no program, so '" + command.program.front() +
                 "' has no place; leave it out");
  }
  try {
    return run_placed(role, command, environment);
  } catch (const std::exception& error) {
    return usage(error.what());
  }
}

}  // namespace lrun::launcher
