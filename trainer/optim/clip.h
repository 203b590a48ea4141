// The global gradient norm, the same bits for every world size, and what clipping makes of it.
//
// Pure. Squares are added in fp64 within fixed blocks of the logical flat vector; the block sums of
// all ranks are then added in index order by every rank. So neither shard borders
// nor arrival order touch a bit. Called by DataParallel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lrun::optim {

// The sum of squares of each block of `block_elements` values (a multiple of 8), in order;
// `values.size()` is a multiple of `block_elements`.
std::vector<double> block_square_sums(std::span<const float> values, std::int64_t block_elements);

// √Σ, added in index order.
double norm_of(std::span<const double> square_sums);

// min(1, max_norm / (norm + 1e-6)), PyTorch's clip_grad_norm_; 1 when `max_norm` is 0.
double clip_factor(double norm, double max_norm);

}  // namespace lrun::optim
