// The sentences with which the rendezvous turns a call down, and what it checks before it listens.
//
// Each sentence is one line that names the value, what is accepted and the fix. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

inline constexpr std::size_t kNameBytesMax = 256;  // host names have at most 253
inline constexpr std::size_t kRoleBytesMax = 64;
inline constexpr int kSlotsMax = 4096;
inline constexpr std::size_t kLabelsMax = 32;
// Leaves room to raise the term above it for ever; a larger one was never given by a service.
inline constexpr std::uint64_t kTermMax = std::uint64_t{1} << 62;
// Names listed in one sentence.
inline constexpr std::size_t kNamesListedMax = 16;

// BadRequest when a limit or a type is broken.
std::optional<Refusal> check(const NodeFacts& facts, const Config& config);
std::optional<Refusal> check_generation(Generation generation);
std::optional<Refusal> check_run(const std::string& run_id, const Config& config);

Refusal closed(const Config& config, Outcome outcome);
Refusal duplicate_node(const NodeId& node, Incarnation living, Incarnation newcomer);
Refusal duplicate_rank(GroupRank rank, const NodeId& holder, const NodeId& newcomer);
Refusal superseded(const NodeId& node);
Refusal has_left(const NodeId& node);
Refusal stale_leave(Generation named, Generation current);
Refusal join_timed_out(const Config& config, const std::vector<NodeId>& came);
Refusal unknown_node(const NodeId& node, const std::vector<NodeId>& known);
Refusal too_many_nodes();
Refusal too_many_deferred();

// "n1, n2 and 5 more"; "nobody" for none.
std::string list_names(const std::vector<NodeId>& nodes);
std::string to_string(Outcome outcome);

}  // namespace lrun::rendezvous
