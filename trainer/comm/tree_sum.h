// Adds the sums of subtrees in the canonical order of the tree: the one place where gradients of
// different ranks meet in a floating-point addition.
//
// Pure. The order of additions per element depends on the tree alone, so cutting the buffer
// anywhere gives the same bits. Called by the communication thread, chunk by chunk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/comm/tree.h"

namespace lrun::comm {

class TreeSum {
 public:
  // `terms`: nodes of the tree over [0, leaves) that tile it, in leaf order.
  // Throws std::invalid_argument otherwise.
  TreeSum(std::span<const Subtree> terms, int leaves);

  // out[i] = the tree's sum of terms[·][i], i < elements. `out` may be one of the terms.
  void add(std::span<const float* const> terms, float* out, std::int64_t elements) const;

 private:
  // What a step reads or writes: a term, a partial sum, or the caller's `out`.
  struct Place {
    enum class Kind { Term, Partial, Out } kind = Kind::Term;
    int index = 0;
  };
  struct Step {
    Place left;
    Place right;
    Place target;
  };

  Place plan(Subtree node, std::span<const Subtree> terms, int free_partial);

  std::vector<Step> steps_;  // post order; the last one writes `out`
  int terms_ = 0;
  int partials_ = 0;
};

}  // namespace lrun::comm
