#include "agent/service_contact.h"

#include <algorithm>
#include <utility>

namespace lrun::agent {
namespace {

// After the first failed call the next heartbeat comes early: a service that only restarted
// rebuilds the group from heartbeats, and the group is not complete before the last of them.
constexpr Duration kEarlyHeartbeat = std::chrono::milliseconds(250);

}  // namespace

ServiceContact::ServiceContact(Duration heartbeat, Duration lease, Instant now)
    : interval_(heartbeat),
      lease_(lease),
      next_heartbeat_(now + heartbeat),
      fence_at_(now + lease * 2 / 3),
      last_heard_(now) {}

bool ServiceContact::answered(Instant now, const HeartbeatAnswered& answer) {
  if (answer.interval > Duration::zero()) interval_ = answer.interval;
  if (answer.lease > Duration::zero()) lease_ = answer.lease;
  fence_at_ = std::max(fence_at_, answer.sent_at + fence_after());
  next_heartbeat_ = std::min(next_heartbeat_, now + interval_);
  heard(now);
  complaint_.clear();
  return std::exchange(is_unreachable_, false);
}

void ServiceContact::unreachable(Instant now, const ServiceUnreachable& call) {
  complaint_ = call.sentence;
  if (!is_unreachable_) next_heartbeat_ = std::min(next_heartbeat_, now + kEarlyHeartbeat);
  is_unreachable_ = true;
  if (call.host_answered) fence_at_ = std::max(fence_at_, now + fence_after());
}

void ServiceContact::assigned(Instant now) {
  heard(now);
  fence_at_ = std::max(fence_at_, now + fence_after());
}

}  // namespace lrun::agent
