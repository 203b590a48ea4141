// The canonical binary tree over the leaves of a global batch, as arithmetic.
//
// Pure. sum(a, b) is one leaf, or sum(a, a + h) + sum(a + h, b) with h the largest power of two
// < b − a. Ranks own contiguous blocks of leaves; only the sums of complete subtrees inside a block
// travel.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/ids.h"

namespace lrun::comm {

// The node of the tree that covers leaves [first, last).
struct Subtree {
  int first = 0;
  int last = 0;
  int leaves() const { return last - first; }
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

// Leaves [K·r/N, K·(r+1)/N) of rank r: what it computes in each step.
Subtree block_of(GlobalRank rank, int world_size, int leaves);

// Where the node [first, last) splits. `last − first` ≥ 2.
int split_of(Subtree node);

// The maximal nodes of the tree over [0, leaves) that lie inside `block`, in leaf order.
std::vector<Subtree> complete_subtrees(Subtree block, int leaves);

}  // namespace lrun::comm
