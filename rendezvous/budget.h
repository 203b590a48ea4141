// What failures cost: the restarts of the whole job, and the pause before the next attempt.
//
// Owns the count of restarts spent, which generation was charged, and the backoff. Refuses to know
// who failed and how the group forms again. Pure. Called by the state machine.
//
// Rule (documented for users): only failures of workers are charged. The loss, drain or fencing of
// a node is a change of membership and free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

// True for failures of workers, false for those of nodes and people.
bool is_charged(FailureKind kind);

// Pause before the attempt that follows `failures` failures in a row without progress: none after
// the first, then 1, 2, 4 … s, at most kBackoffMax.
inline constexpr Duration kBackoffMax = std::chrono::seconds(30);
Duration backoff_after(int failures);

class Budget {
 public:
  explicit Budget(int max_restarts) : max_restarts_(max_restarts) {}

  // A participant says how much was spent: known to it from an earlier life of the service.
  void hear(int restarts_spent);
  // A group begins to run; from now on progress counts for `generation`.
  void begin(Generation generation, Instant now);
  // A worker of the running group has completed this step.
  void note_step(std::int64_t step);

  // False when the budget is spent: the failure ends the job. A generation is charged once: for
  // one that was charged already nothing happens and the answer is true.
  bool charge(Generation generation, FailureKind kind, Instant now);
  bool was_charged(Generation generation) const { return charged_ == generation; }

  int restarts_spent() const { return restarts_spent_; }
  const std::map<FailureKind, int>& by_kind() const { return by_kind_; }
  // The next group is published not before.
  std::optional<Instant> retry_at() const { return retry_at_; }

 private:
  bool made_progress(Instant now) const;

  int max_restarts_;
  int restarts_spent_ = 0;
  std::map<FailureKind, int> by_kind_;
  Generation charged_;
  int failures_without_progress_ = 0;
  Instant began_at_;
  std::int64_t newest_step_ = 0;  // of any generation: a replayed step is no progress
  std::int64_t step_at_failure_ = 0;
  std::optional<Instant> retry_at_;
};

}  // namespace lrun::rendezvous
