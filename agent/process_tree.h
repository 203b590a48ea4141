// The processes below this one, read from /proc, and their end.
//
// Owns reading the tree and killing it in a bounded loop; refuses to know workers. Called by the
// keeper, the guard and, when those are dead, by the agent.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "proto/ids.h"

namespace lrun::agent {

// From the agent's death, or the keeper's, to the last process of the tree: SIGKILL works at once
// except in an uninterruptible wait of the kernel, which is waited for only so long.
inline constexpr Duration kTreeEndLimit = std::chrono::seconds(10);
// Between two looks at a tree that is being ended.
inline constexpr std::chrono::milliseconds kTreeLookInterval{2};

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  bool is_zombie = false;
};

// A snapshot, parents before children. Subtrees rooted at one of `except` are left out.
std::vector<Process> descendants_of(pid_t root, const std::vector<pid_t>& except = {});

// True when the environment that `pid` was started with has every entry ("NAME=value"). False when
// it cannot be read.
bool has_environment(pid_t pid, const std::vector<std::string>& entries);

// Kills and reaps every descendant of this process, but for the subtrees of `except`, until none is
// left. False: some remained at the deadline.
bool end_descendants(Duration limit, const std::vector<pid_t>& except = {});

}  // namespace lrun::agent
