#include "rendezvous/rank_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "rendezvous/natural_order.h"

namespace lrun::rendezvous {
namespace {

using Places = std::vector<std::optional<Candidate>>;

// Widest first: nodes of one block, then of one rack, then of one switch become neighbours.
constexpr std::array kTopologyLabels = {"block", "rack", "switch"};

std::string label_of(const NodeFacts& facts, const char* label) {
  const auto found = facts.labels.find(label);
  return found == facts.labels.end() ? std::string() : found->second;
}

bool is_before_by_topology(const Candidate& left, const Candidate& right) {
  for (const char* label : kTopologyLabels) {
    const std::string left_value = label_of(left.facts, label);
    const std::string right_value = label_of(right.facts, label);
    if (left_value != right_value) return natural_less(left_value, right_value);
  }
  return natural_less(left.facts.node.value, right.facts.node.value);
}

bool is_before_in_choice(const Candidate& left, const Candidate& right) {
  if (left.previous.has_value() != right.previous.has_value()) return left.previous.has_value();
  if (left.previous != right.previous) return left.previous < right.previous;
  if (left.waits_since != right.waits_since) return left.waits_since < right.waits_since;
  return natural_less(left.facts.node.value, right.facts.node.value);
}

// Fixed ranks by rank, then survivors by their old place, then newcomers.
bool is_before_in_seating(const Candidate& left, const Candidate& right) {
  if (left.facts.fixed_rank != right.facts.fixed_rank) {
    if (!left.facts.fixed_rank || !right.facts.fixed_rank) return left.facts.fixed_rank.has_value();
    return left.facts.fixed_rank < right.facts.fixed_rank;
  }
  if (left.previous != right.previous) {
    if (!left.previous || !right.previous) return left.previous.has_value();
    return left.previous < right.previous;
  }
  return is_before_by_topology(left, right);
}

// Where each candidate wants to sit. Fixed ranks that are too large for the group slide down to the
// end of it, without overtaking each other.
std::vector<std::optional<GroupRank>> wanted_places(
    const std::vector<Candidate>& in_seating_order) {
  std::vector<std::optional<GroupRank>> wanted(in_seating_order.size());
  int highest_free = static_cast<int>(in_seating_order.size()) - 1;
  for (std::size_t i = in_seating_order.size(); i-- > 0;) {
    const Candidate& candidate = in_seating_order[i];
    wanted[i] = candidate.previous;
    if (!candidate.facts.fixed_rank) continue;
    wanted[i] = GroupRank{std::min(candidate.facts.fixed_rank->value, highest_free)};
    highest_free = wanted[i]->value - 1;
  }
  return wanted;
}

bool is_free(const Places& places, std::optional<GroupRank> wanted) {
  return wanted && wanted->value >= 0 && std::cmp_less(wanted->value, places.size()) &&
         !places[static_cast<std::size_t>(wanted->value)].has_value();
}

}  // namespace

std::vector<Candidate> choose_participants(std::vector<Candidate> candidates, int nodes_max) {
  std::sort(candidates.begin(), candidates.end(), is_before_in_choice);
  if (std::cmp_less(nodes_max, candidates.size())) {
    candidates.erase(candidates.begin() + nodes_max, candidates.end());
  }
  return candidates;
}

std::vector<Candidate> order_by_group_rank(std::vector<Candidate> participants) {
  std::sort(participants.begin(), participants.end(), is_before_in_seating);
  const auto wanted = wanted_places(participants);
  Places places(participants.size());
  std::vector<Candidate> unseated;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    if (is_free(places, wanted[i])) {
      places[static_cast<std::size_t>(wanted[i]->value)] = participants[i];
    } else {
      unseated.push_back(participants[i]);
    }
  }
  auto next = unseated.begin();
  std::vector<Candidate> ordered;
  ordered.reserve(places.size());
  for (std::optional<Candidate>& place : places) {
    ordered.push_back(place ? std::move(*place) : std::move(*next++));
  }
  return ordered;
}

std::vector<Assignment> assign(const std::vector<Candidate>& in_group_rank_order,
                               const GroupTerms& terms) {
  std::vector<Assignment> assignments;
  int world_size = 0;
  std::map<std::string, int> role_world_sizes;
  for (const Candidate& candidate : in_group_rank_order) {
    Assignment assignment;
    assignment.generation = terms.generation;
    assignment.reason = terms.reason;
    assignment.restarts_spent = terms.restarts_spent;
    assignment.group_rank = GroupRank{static_cast<int>(assignments.size())};
    assignment.group_world_size = static_cast<int>(in_group_rank_order.size());
    assignment.slots = candidate.facts.slots;
    assignment.first_global_rank = GlobalRank{world_size};
    assignment.first_role_rank = role_world_sizes[candidate.facts.role];
    assignment.master_addr = in_group_rank_order.front().facts.address;
    assignment.master_port = in_group_rank_order.front().facts.master_port;
    world_size += candidate.facts.slots;
    role_world_sizes[candidate.facts.role] += candidate.facts.slots;
    assignments.push_back(assignment);
  }
  for (std::size_t rank = 0; rank < assignments.size(); ++rank) {
    assignments[rank].world_size = world_size;
    assignments[rank].role_world_size = role_world_sizes[in_group_rank_order[rank].facts.role];
  }
  return assignments;
}

}  // namespace lrun::rendezvous
