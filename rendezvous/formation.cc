#include "rendezvous/formation.h"

#include <algorithm>

namespace lrun::rendezvous {
namespace {

// Everybody who was in the previous group is expected, and nobody else.
Instant all_survivors_at(const Formation& formation, const Config& config) {
  if (formation.absent_survivors > 0) {
    return formation.ended_at + config.kill_grace + 2 * config.heartbeat;
  }
  const bool may_be_more = formation.candidates < config.max_nodes && formation.gathering_until;
  return may_be_more ? std::max(formation.enough_since, *formation.gathering_until)
                     : formation.enough_since;
}

Instant all_expected_at(const Formation& formation, const Config& config) {
  if (formation.has_survivors) return all_survivors_at(formation, config);
  if (formation.candidates >= config.max_nodes) return formation.enough_since;
  return formation.enough_since + config.last_call;
}

}  // namespace

std::optional<Instant> publish_at(const Formation& formation, const Config& config) {
  if (formation.candidates < config.min_nodes) return std::nullopt;
  const Instant at = all_expected_at(formation, config);
  return formation.retry_at ? std::max(at, *formation.retry_at) : at;
}

}  // namespace lrun::rendezvous
