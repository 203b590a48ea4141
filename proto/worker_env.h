// The environment a worker starts with: torchrun's variables and lrun's own.
//
// Owns the names and the two directions of the translation; refuses to know where the values come
// from. The agent writes it, the trainer (or any user program) reads it. Names:
// docs/environment.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "proto/ids.h"

namespace lrun {

// Environment variables by name. Ordered, so that what is printed or compared is the same each
// time.
using Environment = std::map<std::string, std::string, std::less<>>;

// What one worker of one generation is told. A worker that was not started by lrun has `alone()`.
struct WorkerEnv {
  LocalRank local_rank{};
  int local_world_size = 1;
  GlobalRank global_rank{};
  int world_size = 1;
  GroupRank group_rank{};
  int group_world_size = 1;
  std::string role_name = "default";
  int role_rank = 0;
  int role_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  std::string run_id = "none";
  Generation generation{};
  int restart_count = 0;
  int max_restarts = 0;
  std::string error_file{};
  // Inherited descriptor of the channel to the agent; −1 when there is none.
  int channel_fd = -1;

  friend bool operator==(const WorkerEnv&, const WorkerEnv&) = default;
};

// A world of one worker without agent: what a program gets when it is started by hand.
WorkerEnv alone();

// The variables to set for a worker. Never contains a name that torchrun leaves to the parent.
Environment to_environment(const WorkerEnv& worker);

// A variable that is present but cannot be understood: one line that names variable, value and
// what is accepted.
struct EnvironmentError {
  std::string sentence;
};

// Reads what `to_environment` wrote. Without RANK and WORLD_SIZE: `alone()`. Anything else missing
// takes its default; a value that is no number, negative, or out of its range is an error.
std::variant<WorkerEnv, EnvironmentError> from_environment(const Environment& environment);

}  // namespace lrun
