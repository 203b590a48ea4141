#include "agent/stall_detector.h"

#include <algorithm>

namespace lrun::agent {

void StallDetector::note(Instant now, const channel::Progress& progress) {
  if (!last_ || progress.step != last_->step) step_done_at_ = now;
  last_ = progress;
  heard_at_ = now;
}

std::optional<Instant> StallDetector::deadline() const {
  if (!timeout_ || !last_) return std::nullopt;
  const Instant computing = step_done_at_ + *timeout_;
  if (last_->activity == channel::Activity::Computing) return computing;
  const Instant silent = std::max(computing, heard_at_ + kSilence);
  return std::min(silent, step_done_at_ + kPatience * *timeout_);
}

}  // namespace lrun::agent
