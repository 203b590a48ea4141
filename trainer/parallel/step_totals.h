// What all ranks must agree on before an optimizer step: the count, the loss, the gradient norm.
//
// One exchange per step. Every rank adds the same numbers in the same order (leaves, norm blocks),
// so all see the same bits for every world size, and all take the same decision. Called by
// DataParallel. Thread: the compute thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/comm.h"

namespace lrun::parallel {

// Of this rank: its leaves in order, and the norm blocks of its shard in order.
struct RankTotals {
  std::int64_t count = 0;           // counted samples
  std::vector<double> leaf_losses;  // Σ of each leaf's losses
  std::vector<double> square_sums;  // of the summed gradient
};

// Of the whole global batch.
struct StepTotals {
  std::int64_t count = 0;
  double loss_sum = 0;
  double sum_norm = 0;  // L2 norm of the summed gradient, not yet divided by the count
};

// Throws the Comm's errors.
StepTotals exchange(const RankTotals& mine, comm::Comm& comm);

}  // namespace lrun::parallel
