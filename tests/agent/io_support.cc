#include "tests/agent/io_support.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "agent/process_tree.h"

namespace lrun::agent::testing {
namespace {

constexpr int kPollMs = 5;

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "lrun-agent-test-XXXXXX";
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ProcessMark::ProcessMark()
    : value_(std::to_string(std::random_device{}()) + std::to_string(::getpid())) {}

ProcessMark::~ProcessMark() {
  for (const pid_t pid : carriers()) ::kill(pid, SIGKILL);
}

std::vector<pid_t> ProcessMark::carriers() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && pid != ::getpid() && has_environment(pid, {this->entry()})) found.push_back(pid);
  }
  return found;
}

bool eventually(const std::function<bool()>& is_true) {
  const auto deadline = std::chrono::steady_clock::now() + kTestLimit;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > deadline) return is_true();
    ::poll(nullptr, 0, kPollMs);
  }
  return true;
}

bool is_alive(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  return stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string io_worker() { return LRUN_IO_WORKER; }

}  // namespace lrun::agent::testing
