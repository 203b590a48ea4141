// Whether the kernel has killed for want of memory, as far as this process's cgroup tells.
//
// Owns reading `oom_kill` of cgroup v1 or v2. It is a guess: the counter names no process, so a
// rise together with a SIGKILL that nobody here sent is taken for the cause. Without a readable
// counter nothing is ever claimed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lrun::agent {

class MemoryKills {
 public:
  MemoryKills();
  // `file` instead of the own cgroup's; for tests.
  explicit MemoryKills(std::string file);
  // Since the last call, or the start.
  bool has_risen();

 private:
  std::string file_;  // empty: none can be read
  std::optional<std::int64_t> seen_;
};

}  // namespace lrun::agent
