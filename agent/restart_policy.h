// Whether a failed group is started again.
//
// Owns the two ends of patience: the job's budget of restarts, and the crash loop (the same failure
// again and again without a step in between), which no budget is large enough for. Refuses to know
// workers and time. Called by the supervisor, once a failed generation.
#pragma once

#include <cstdint>
#include <optional>

#include "rendezvous/events.h"

namespace lrun::agent {

enum class Verdict { Restart, BudgetSpent, NoProgress };

class RestartPolicy {
 public:
  struct Limits {
    int max_restarts = 0;
    int crash_loop_limit = 5;
  };
  // A generation that ran this long has made progress, whether its workers report steps or not. As
  // long as the longest pause that the service makes before a restart.
  static constexpr Duration kRunIsProgress = std::chrono::seconds(30);

  explicit RestartPolicy(Limits limits) : limits_(limits) {}

  struct Failure {
    const FirstCause& cause;
    int restarts_spent = 0;  // of the job, before this failure
    bool is_charged = true;  // false: a victim's; free, but counted as a turn of the loop
    std::int64_t step =
        0;               // newest step that any worker of the node reported, over all generations
    Duration ran_for{};  // from start of the generation to the failure
  };
  Verdict judge(const Failure& failure);
  // Equal failures in a row without progress, the last one included.
  int failures_in_a_row() const { return in_a_row_; }

 private:
  struct Signature {
    FailureKind kind = FailureKind::ExitCode;
    int code = 0;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  Limits limits_;
  int in_a_row_ = 0;
  std::optional<Signature> last_;
  std::int64_t step_ = 0;
};

}  // namespace lrun::agent
