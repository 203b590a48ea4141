#include "agent/restart_policy.h"

#include <algorithm>

namespace lrun::agent {

Verdict RestartPolicy::judge(const Failure& failure) {
  const Signature signature{.kind = failure.cause.kind, .code = failure.cause.code};
  const bool made_progress = failure.step > step_ || failure.ran_for >= kRunIsProgress;
  in_a_row_ = made_progress || last_ != signature ? 1 : in_a_row_ + 1;
  last_ = signature;
  step_ = std::max(step_, failure.step);
  if (failure.is_charged && failure.restarts_spent >= limits_.max_restarts) {
    return Verdict::BudgetSpent;
  }
  return in_a_row_ >= limits_.crash_loop_limit ? Verdict::NoProgress : Verdict::Restart;
}

}  // namespace lrun::agent
