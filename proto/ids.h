// Names of things that cross process borders: strong types for ids, ranks and times.
//
// Owns nothing but types. Everything in lrun may include it; it includes only the standard library.
// Two ids of different kinds never compare, so a group rank cannot be passed for a global rank.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace lrun {

// A point on the monotonic clock. Pure code receives it and never asks for it.
using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// A value that only meets values of the same tag.
template <class Tag, class Value>
struct Tagged {
  Value value{};
  friend auto operator<=>(const Tagged&, const Tagged&) = default;
};

// A machine or pod, stable across restarts: the host name, with `#k` for the k-th agent on it.
using NodeId = Tagged<struct NodeIdTag, std::string>;
// Random number of one agent process; tells two lives of one node apart.
using Incarnation = Tagged<struct IncarnationTag, std::uint64_t>;
// Handle of one call to the rendezvous, to be answered exactly once.
using Ticket = Tagged<struct TicketTag, std::uint64_t>;
// Worker within its node, 0 … slots − 1.
using LocalRank = Tagged<struct LocalRankTag, int>;
// Node within the group, 0 … group world size − 1.
using GroupRank = Tagged<struct GroupRankTag, int>;
// Worker within the world, 0 … world size − 1.
using GlobalRank = Tagged<struct GlobalRankTag, int>;

// Identity of a published group and fencing token on every message: `term.number`. The term is one
// life of the service, the number counts the groups published in it. {0, 0} means "none yet".
struct Generation {
  std::uint64_t term = 0;
  std::uint64_t number = 0;
  friend auto operator<=>(const Generation&, const Generation&) = default;
};

inline bool is_none(Generation generation) { return generation == Generation{}; }

inline std::string to_string(Generation generation) {
  return std::to_string(generation.term) + "." + std::to_string(generation.number);
}

}  // namespace lrun
