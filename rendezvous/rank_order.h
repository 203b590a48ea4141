// Who sits where: from the nodes that wait to the assignments of one group.
//
// Owns the choice of participants, their order and the arithmetic of ranks. Refuses to know phases,
// leases and time, except who came first. Pure. Called when the state machine publishes.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

// A node that could be in the next group.
struct Candidate {
  NodeFacts facts;
  std::optional<GroupRank> previous;  // its place in the group before, if it was in it
  Instant waits_since;
};

// What all assignments of one group share.
struct GroupTerms {
  Generation generation;
  GenerationReason reason = GenerationReason::Start;
  int restarts_spent = 0;
};

// The candidates that become participants, at most `nodes_max`: those of the previous group before
// all others, so that an early spare never displaces a survivor, then who waited longest, then by
// natural order of names.
std::vector<Candidate> choose_participants(std::vector<Candidate> candidates, int nodes_max);

// The participants in the order of their group ranks. A fixed rank is honoured, or, where the group
// is too small for it, at least the order among fixed ranks. A survivor keeps its place while that
// exists. The free places go to survivors whose place is gone, then to newcomers: neighbours by the
// labels block, rack and switch, then by natural order of names.
// Requires that no two candidates have the same fixed rank.
std::vector<Candidate> order_by_group_rank(std::vector<Candidate> participants);

// One assignment per participant, in the given order: dense global ranks as prefix sums of slots,
// ranks within each role, and the address of group rank 0.
std::vector<Assignment> assign(const std::vector<Candidate>& in_group_rank_order,
                               const GroupTerms& terms);

}  // namespace lrun::rendezvous
