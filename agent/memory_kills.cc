#include "agent/memory_kills.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lrun::agent {
namespace {

std::optional<std::int64_t> read_count(const std::string& file) {
  std::ifstream lines(file);
  for (std::string word; lines >> word;) {
    std::int64_t count = 0;
    if (word == "oom_kill" && lines >> count) return count;
  }
  return std::nullopt;
}

// The own cgroup's file with the counter. In a container the path of /proc/self/cgroup may not
// exist below the mount, whose root is then the own cgroup.
std::string find_file() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const bool is_v1 = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (!is_v1 && !controllers.empty()) continue;
    const std::string mount = is_v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string name = is_v1 ? "/memory.oom_control" : "/memory.events";
    for (const std::string& file : {mount + path + name, mount + name}) {
      if (read_count(file)) return file;
    }
  }
  return {};
}

}  // namespace

MemoryKills::MemoryKills() : MemoryKills(find_file()) {}
MemoryKills::MemoryKills(std::string file) : file_(std::move(file)), seen_(read_count(file_)) {}

bool MemoryKills::has_risen() {
  const std::optional<std::int64_t> before = seen_;
  seen_ = read_count(file_);
  return before && seen_ && *seen_ > *before;
}

}  // namespace lrun::agent
