// When the agent must speak to the service, and when it has been silent for too long.
//
// Owns the heartbeat's schedule and the agent's end of the lease. The lease has two ends: the
// service counts it from the last request it answered, the agent from *sending* that request, and
// fences after two thirds of it, so always first (architecture.md §4). Fencing is for silence only:
// a host that answers in any way, even "connection refused", pushes the fence out. Called by the
// supervisor.
#pragma once

#include <algorithm>
#include <string>

#include "agent/events.h"

namespace lrun::agent {

class ServiceContact {
 public:
  ServiceContact(Duration heartbeat, Duration lease, Instant now);

  void heartbeat_sent(Instant now) { next_heartbeat_ = now + interval_; }
  // True when the service was unreachable before: it may be a new life that knows nothing.
  bool answered(Instant now, const HeartbeatAnswered& answer);
  void unreachable(Instant now, const ServiceUnreachable& call);
  // A decision of the service arrived.
  void heard(Instant now) { last_heard_ = std::max(last_heard_, now); }
  // An assignment arrived: the lease of a member begins.
  void assigned(Instant now);

  Instant next_heartbeat() const { return next_heartbeat_; }
  // Passed: whoever can be evicted now must not go on as a member.
  Instant fence_at() const { return fence_at_; }
  Duration fence_after() const { return lease_ * 2 / 3; }
  Instant last_heard() const { return last_heard_; }
  // What the last failed call said; empty while the service answers.
  const std::string& complaint() const { return complaint_; }

 private:
  Duration interval_;
  Duration lease_;
  Instant next_heartbeat_;
  Instant fence_at_;
  Instant last_heard_;
  bool is_unreachable_ = false;
  std::string complaint_;
};

}  // namespace lrun::agent
