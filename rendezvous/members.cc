#include "rendezvous/members.h"

#include <algorithm>
#include <chrono>

namespace lrun::rendezvous {

Member* Members::find(const NodeId& node) {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : &found->second;
}

const Member* Members::find(const NodeId& node) const {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : &found->second;
}

Member* Members::find(Ticket ticket) {
  for (auto& [node, member] : members_) {
    if (member.join && member.join->ticket == ticket) return &member;
    if (member.watch && member.watch->ticket == ticket) return &member;
  }
  return nullptr;
}

Member& Members::add(const NodeFacts& facts, Instant now) {
  Member& member = members_[facts.node];
  member = Member{};
  member.facts = facts;
  renew(member, now);
  return member;
}

void Members::renew(Member& member, Instant now) const {
  member.heard_at = now;
  member.lease_end = std::max(member.lease_end, now + lease());
  member.vanished_at.reset();
  member.is_judged_by_lease = false;
}

void Members::extend_leases(Duration lag) {
  for (auto& [node, member] : members_) member.lease_end += lag;
}

void Members::end_call(Member& member, Ticket ticket, Instant now) const {
  if (member.join && member.join->ticket == ticket) member.join.reset();
  if (member.watch && member.watch->ticket == ticket) member.watch.reset();
  if (member.join || member.watch) return;
  member.vanished_at = now;
  member.last_vanished_at = now;
}

Instant Members::departs_at(const Member& member) const {
  if (!member.is_in_grace()) return member.lease_end;
  return std::min(member.lease_end, *member.vanished_at + config_->gone_grace);
}

std::optional<Evidence> Members::judge(Member& member, Instant now) const {
  if (now < departs_at(member)) return std::nullopt;
  if (member.lease_end <= now) return Evidence::Silent;
  const double share = kVanishShareMax * static_cast<double>(members_.size());
  if (static_cast<double>(vanished_with(member)) <= std::max(1.0, share)) return Evidence::Gone;
  member.is_judged_by_lease = true;
  member.is_ready = false;
  return std::nullopt;
}

bool Members::is_replaceable(const Member& member, Instant now) const {
  return member.vanished_at.has_value() || member.lease_end <= now;
}

bool Members::is_in_doubt(const Member& member, Instant now) const {
  return member.vanished_at.has_value() || now - member.heard_at > 2 * heartbeat_interval();
}

Duration Members::heartbeat_interval() const {
  const Duration spread = std::chrono::seconds(members_.size()) / kHeartbeatsPerSecondMax;
  return std::max(config_->heartbeat, spread);
}

// At least three heartbeats, where it is the size of the group that makes them rare.
Duration Members::lease() const {
  const Duration interval = heartbeat_interval();
  return interval > config_->heartbeat ? std::max(config_->lease, 3 * interval) : config_->lease;
}

// How many nodes vanished within one grace of this one, itself and those that came back included.
std::size_t Members::vanished_with(const Member& member) const {
  return static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [&](const auto& entry) {
        const auto& other = entry.second.last_vanished_at;
        if (!other || !member.vanished_at) return false;
        return std::chrono::abs(*other - *member.vanished_at) <= config_->gone_grace;
      }));
}

}  // namespace lrun::rendezvous
