// The block that a failed job ends with on stderr, in torchrun's form.
//
// Pure. Owns the text; refuses to know who prints it. Above torchrun's block stands one sentence
// with the job's first cause. Called by the launcher through Agent::report().
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/events.h"

namespace lrun::agent {

// One worker of this node that did not end well in the last generation.
struct FailedWorker {
  GlobalRank global_rank{};
  LocalRank local_rank{};
  int pid = 0;
  ExitStatus status{};
  std::chrono::system_clock::time_point ended_at{};
  std::string error_file{};  // empty: none was written
  std::string call_stack{};  // the record's call stack, else its message; empty without a record
  std::string last_lines{};  // of stderr
};

struct FailureReport {
  std::string program{};  // as the title names it
  std::string host{};
  std::optional<FirstCause> first_cause{};
  std::vector<FailedWorker> workers{};  // in the order in which they ended
  std::string log_folder{};
};

// Ends with a newline; empty when nothing failed.
std::string to_text(const FailureReport& report);

}  // namespace lrun::agent
