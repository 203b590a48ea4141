// The sums of a rank's own leaves: flat gradient buffers, filled as backward delivers gradients.
//
// Owns the buffers. Each gradient is added straight from autograd's own tensor into the place that
// the accumulation plan gives it; no buffer is ever cleared, since the first leaf of a sum
// overwrites it. Padding is zero and stays zero. Refuses to know buckets and ranks. Called by
// DataParallel. Thread: the compute thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/parallel/accumulation.h"
#include "trainer/parallel/flat_layout.h"

namespace lrun::parallel {

class LeafSums {
 public:
  LeafSums(std::int64_t elements, AccumulationPlan plan);

  const AccumulationPlan& plan() const { return plan_; }

  // The gradient of one slot in the leaf of plan().steps[step]. Dense fp32 of `slot.elements`
  // elements, or undefined for a parameter that the leaf did not use: it counts as zero. Throws
  // std::runtime_error naming the slot for any other gradient. Each slot once per leaf.
  void add(std::size_t step, const Slot& slot, const at::Tensor& gradient);

  // The sum over plan().subtrees[i] once all its leaves are added: flat fp32.
  at::Tensor& sum(std::size_t i);
  std::int64_t bytes() const;

 private:
  AccumulationPlan plan_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace lrun::parallel
