// "No step for too long", for one worker.
//
// Owns the question whether a worker is the culprit of a stall. In a stall all ranks stand still
// together, so those that say they wait for a peer (or save) and keep saying it are given far more
// time than the one that computes or has fallen silent. Watches only workers that have reported
// progress at least once. Called by the supervisor; time is passed in.
#pragma once

#include <optional>

#include "proto/channel.h"
#include "proto/ids.h"

namespace lrun::agent {

class StallDetector {
 public:
  // A trainer reports each second; one that has not for this long is silent, whatever it said last.
  static constexpr Duration kSilence = std::chrono::seconds(3);
  // Time-outs granted to a worker that waits or saves and says so: a checkpoint may take longer
  // than a step, and when everybody waits for everybody somebody has to be ended at last.
  static constexpr int kPatience = 10;

  // Never stalls.
  StallDetector() = default;
  explicit StallDetector(std::optional<Duration> timeout) : timeout_(timeout) {}

  void note(Instant now, const channel::Progress& progress);
  // When `is_stalled` becomes true unless the worker reports; none while it is not watched.
  std::optional<Instant> deadline() const;
  bool is_stalled(Instant now) const { return deadline() && *deadline() <= now; }

 private:
  std::optional<Duration> timeout_;
  std::optional<channel::Progress> last_;
  Instant step_done_at_;
  Instant heard_at_;
};

}  // namespace lrun::agent
