// The order in which a rank adds the gradients of its own leaves: the canonical tree, with as few
// live gradient buffers as a binary counter needs.
//
// Pure. A leaf's gradient g is never stored by itself when it ends a node of the tree: it is added
// on the spot to the waiting left siblings, innermost first, and lands in the outermost one:
//
//   leaves 0…3:   A = g0      A = A + g1      B = g2      A = A + (B + g3)
//
// So a subtree of n leaves needs max(1, ⌈log2 n⌉) buffers. Used by LeafSums; tree: comm/tree.h.
#pragma once

#include <vector>

#include "trainer/comm/tree.h"

namespace lrun::parallel {

// What to do with the gradient of one leaf: `destination = addends[n−1] + (… + (addends[0] + g))`.
struct LeafStep {
  int leaf = 0;
  int destination = 0;       // buffer index
  std::vector<int> addends;  // buffer indices, innermost first; the last one is `destination`
};

// The whole block of a rank. `sums[i]` of `subtrees[i]` stays in its buffer until the step ends.
struct AccumulationPlan {
  std::vector<LeafStep> steps;          // one per leaf of the block, in order
  std::vector<comm::Subtree> subtrees;  // the complete subtrees of the block, in leaf order
  std::vector<int> sums;                // the buffer that ends up with each subtree's sum
  int buffers = 0;                      // live gradient buffers needed
};

AccumulationPlan plan_accumulation(comm::Subtree block, int leaves);

}  // namespace lrun::parallel
