// When the next group is published.
//
// Owns the one decision between "somebody may still come" and "go". Pure function of counts and
// times; called by the state machine after every event while no group runs.
#pragma once

#include <optional>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

struct Formation {
  int candidates = 0;        // nodes that wait
  int absent_survivors = 0;  // live participants of the previous group that do not wait yet
  // A participant of the previous group is still here, waiting or not.
  bool has_survivors = false;
  Instant ended_at{};      // of the previous group
  Instant enough_since{};  // since when min_nodes wait; only asked when they do
  // The service has just started: until then survivors may be here that it has not heard yet.
  std::optional<Instant> gathering_until{};
  std::optional<Instant> retry_at{};  // backoff: not before
};

// None while there are fewer than min_nodes. A re-form goes as soon as every survivor waits, and
// waits for them as long as a worker may take to stop. Where nobody survived, and for the first
// group, stragglers have a last call, until there are max_nodes.
std::optional<Instant> publish_at(const Formation& formation, const Config& config);

}  // namespace lrun::rendezvous
