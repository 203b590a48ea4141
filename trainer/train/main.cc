// lrun-train: trains a model described by a YAML file, alone or as one worker of lrun.
//
// Owns the exit codes and the last line of a run that failed; everything else is in commands.cc and
// the library. Exit codes: 0 done, 1 failed, 2 usage, 128 + n stopped by signal n.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "trainer/loop/agent_link.h"
#include "trainer/loop/errors.h"
#include "trainer/loop/signals.h"
#include "trainer/parallel/determinism.h"
#include "trainer/parallel/process_memory.h"
#include "trainer/train/command_line.h"
#include "trainer/train/commands.h"
#include "trainer/train/place.h"
#include "trainer/train/yaml_config.h"

namespace lrun::train {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

void print_error(const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "lrun-train: %s\n", sentence.c_str());
}

// Leaves at once: peers must not wait for destructors, and after a Comm's error nothing of the
// state is worth saving.
[[noreturn]] void fail(loop::AgentLink& agent, comm::Comm& comm, const std::string& reason,
                       std::optional<GlobalRank> peer) {
  agent.failed(reason, peer);
  print_error("global rank " + std::to_string(comm.rank().value) + ": " + reason);
  if (!peer) comm.abort("global rank " + std::to_string(comm.rank().value) + " failed: " + reason);
  std::fflush(stderr);
  ::_exit(kFailed);
}

int run(Command command, const Config& config, Place& place) {
  loop::AgentLink agent(place.channel.get(), *place.comm);
  try {
    return run_command(command, config, place, agent);
  } catch (const loop::UsageError& error) {
    // Every rank throws the same sentence.
    if (place.worker.global_rank.value == 0) print_error(error.what());
    agent.failed(error.what(), std::nullopt);
    return kUsage;
  } catch (const comm::PeerLost& error) {
    fail(agent, *place.comm, error.what(), error.peer);
  } catch (const std::exception& error) {
    fail(agent, *place.comm, error.what(), std::nullopt);
  }
}

int start(const std::vector<std::string>& arguments) {
  const CommandLine line = parse_command_line(arguments);
  switch (line.command) {
    case Command::Help:
      std::fputs(help_text().c_str(), stdout);
      return 0;
    case Command::Version:
      std::puts("lrun-train " LRUN_VERSION);
      return 0;
    case Command::PrintConfig:
      std::fputs(to_yaml(read_config(line.config, line.overrides)).c_str(), stdout);
      return 0;
    case Command::Fit:
    case Command::Validate:
    case Command::Test:
      break;
  }
  const Config config = read_config(line.config, line.overrides);
  const WorkerEnv worker = read_worker_env();
  parallel::pin_arithmetic(static_cast<int>(config.trainer.threads));
  parallel::keep_freed_memory();
  Place place = connect(worker);
  // Only now: until peers are connected there is nothing to save, and a signal ends the wait at
  // once.
  loop::watch_stop_signals();
  return run(line.command, config, place);
}

// Of several workers of a node the first speaks for all: they make the same mistake.
bool speaks_for_node() {
  const char* local_rank = std::getenv("LOCAL_RANK");
  return local_rank == nullptr || std::string(local_rank) == "0";
}

}  // namespace
}  // namespace lrun::train

int main(int argc, char** argv) {
  try {
    return lrun::train::start({argv + 1, argv + argc});
  } catch (const lrun::loop::UsageError& error) {
    if (lrun::train::speaks_for_node()) lrun::train::print_error(error.what());
    return lrun::train::kUsage;
  } catch (const std::exception& error) {
    lrun::train::print_error(error.what());
    return lrun::train::kFailed;
  }
}
