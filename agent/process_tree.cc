#include "agent/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace lrun::agent {
namespace {

// More than the kernel's limit for arguments and environment is not read.
constexpr std::size_t kEnvironmentBytesMax = 8 * 1024 * 1024;

std::optional<pid_t> pid_of(const char* name) {
  pid_t pid = 0;
  const char* end = name + std::strlen(name);
  const auto parsed = std::from_chars(name, end, pid);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return pid;
}

std::string read_file(const std::string& path, std::size_t bytes_max) {
  std::string content;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16 * 1024> piece;
  while (file.is_open() && content.size() < bytes_max) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    content.append(piece.data(), static_cast<std::size_t>(got));
  }
  return content;
}

// /proc/<pid>/stat: "pid (name) state parent group session …"; the name may hold anything.
std::optional<Process> read_process(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  char state = 0;
  Process process{.pid = pid};
  const int fields = std::sscanf(stat.c_str() + name_end + 1, " %c %d %d %d", &state,
                                 &process.parent, &process.group, &process.session);
  if (fields != 4) return std::nullopt;
  process.is_zombie = state == 'Z' || state == 'X';
  return process;
}

std::map<pid_t, std::vector<Process>> all_by_parent() {
  std::map<pid_t, std::vector<Process>> by_parent;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::optional<pid_t> pid = pid_of(entry->d_name);
    const std::optional<Process> process = pid ? read_process(*pid) : std::nullopt;
    if (process) by_parent[process->parent].push_back(*process);
  }
  return by_parent;
}

}  // namespace

std::vector<Process> descendants_of(pid_t root, const std::vector<pid_t>& except) {
  const auto by_parent = all_by_parent();
  std::vector<Process> found;
  std::vector<pid_t> parents{root};
  for (std::size_t at = 0; at < parents.size(); ++at) {
    const auto children = by_parent.find(parents[at]);
    if (children == by_parent.end()) continue;
    for (const Process& child : children->second) {
      if (std::find(except.begin(), except.end(), child.pid) != except.end()) continue;
      found.push_back(child);
      parents.push_back(child.pid);
    }
  }
  return found;
}

bool has_environment(pid_t pid, const std::vector<std::string>& entries) {
  // Each entry of the file ends with a NUL byte, so one look for "\0NAME=value\0" is exact.
  const std::string environment =
      '\0' + read_file("/proc/" + std::to_string(pid) + "/environ", kEnvironmentBytesMax);
  return std::all_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    return environment.find('\0' + entry + '\0') != std::string::npos;
  });
}

bool end_descendants(Duration limit, const std::vector<pid_t>& except) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    bool is_any_left = false;
    for (const Process& process : descendants_of(::getpid(), except)) {
      // Zombies of others go when their parent does.
      if (process.is_zombie && process.parent == ::getpid()) {
        ::waitpid(process.pid, nullptr, WNOHANG);
      } else if (!process.is_zombie) {
        ::kill(process.pid, SIGKILL);
      }
      is_any_left = true;
    }
    if (!is_any_left) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, static_cast<int>(kTreeLookInterval.count()));
  }
}

}  // namespace lrun::agent
