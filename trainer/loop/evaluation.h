// Evaluates a module over a data set, dealt out to all ranks.
//
// Never pads, never drops: the set is cut into batches by global index, each rank takes a
// contiguous block of batches, and results are merged in batch order, so the outcome has the same
// bits for every world size. Compute thread, all ranks together.
#pragma once

#include <functional>

#include "trainer/comm/comm.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/batch_limit.h"
#include "trainer/loop/module.h"

namespace lrun::loop {

struct EvaluationPlan {
  int batch_size = 1;
  BatchLimit limit;
};

// `step` is called with gradients off; the caller has put the module into eval mode.
EvaluationResult evaluate(const data::Dataset& dataset, const EvaluationPlan& plan,
                          comm::Comm& comm,
                          const std::function<EvaluationOutput(const data::Batch&)>& step);

}  // namespace lrun::loop
