// What the io tests share: own folders, own processes found by a mark, bounded polling.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lrun::agent::testing {

// A machine that is ten times slower than expected still passes.
inline constexpr std::chrono::seconds kTestLimit{30};

// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// An environment entry that only one test's processes carry; whoever still has it at the end is
// killed.
class ProcessMark {
 public:
  ProcessMark();
  ~ProcessMark();
  ProcessMark(const ProcessMark&) = delete;
  ProcessMark& operator=(const ProcessMark&) = delete;
  const std::string& name() const { return name_; }
  const std::string& value() const { return value_; }
  std::string entry() const { return name_ + "=" + value_; }
  std::vector<pid_t> carriers() const;

 private:
  std::string name_ = "LRUN_TEST_MARK";
  std::string value_;
};

// Polls until `is_true` or kTestLimit; returns the last answer.
bool eventually(const std::function<bool()>& is_true);

bool is_alive(pid_t pid);  // zombies are not
std::string read_file(const std::filesystem::path& path);
// The helper program of these tests.
std::string io_worker();

}  // namespace lrun::agent::testing
