#include "rendezvous/budget.h"

#include <algorithm>

namespace lrun::rendezvous {
namespace {

// More doublings than lead to kBackoffMax.
constexpr int kDoublingsMax = 8;

}  // namespace

bool is_charged(FailureKind kind) {
  switch (kind) {
    case FailureKind::ExitCode:
    case FailureKind::Signal:
    case FailureKind::OutOfMemory:
    case FailureKind::Stalled:
    case FailureKind::SpawnFailed:
    case FailureKind::Reported:
      return true;
    case FailureKind::NodeLost:
    case FailureKind::LeaseLost:
    case FailureKind::Interrupted:
    case FailureKind::Refused:
      return false;
  }
  return true;
}

Duration backoff_after(int failures) {
  if (failures < 2) return Duration::zero();
  const Duration doubled = std::chrono::seconds(1 << std::min(failures - 2, kDoublingsMax));
  return std::min(doubled, kBackoffMax);
}

void Budget::hear(int restarts_spent) {
  restarts_spent_ = std::max(restarts_spent_, std::min(restarts_spent, max_restarts_));
}

void Budget::begin(Generation generation, Instant now) {
  if (generation == charged_) charged_ = Generation{};
  began_at_ = now;
  retry_at_.reset();
}

void Budget::note_step(std::int64_t step) { newest_step_ = std::max(newest_step_, step); }

bool Budget::charge(Generation generation, FailureKind kind, Instant now) {
  if (was_charged(generation)) return true;
  charged_ = generation;
  if (restarts_spent_ >= max_restarts_) return false;
  ++restarts_spent_;
  ++by_kind_[kind];
  failures_without_progress_ = made_progress(now) ? 1 : failures_without_progress_ + 1;
  step_at_failure_ = newest_step_;
  retry_at_ = now + backoff_after(failures_without_progress_);
  return true;
}

// Workers that report steps are judged by them. The others are silent, so a group that ran for
// longer than the longest pause counts as progress.
bool Budget::made_progress(Instant now) const {
  return newest_step_ > step_at_failure_ || now - began_at_ > kBackoffMax;
}

}  // namespace lrun::rendezvous
