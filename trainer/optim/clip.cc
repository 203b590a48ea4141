#include "trainer/optim/clip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace lrun::optim {
namespace {

// Independent partial sums let the compiler use vector registers without reordering additions.
constexpr std::size_t kLanes = 8;

double square_sum(std::span<const float> block) {
  double lanes[kLanes] = {};
  for (std::size_t i = 0; i < block.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = block[i + lane];
      lanes[lane] += value * value;
    }
  }
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

}  // namespace

std::vector<double> block_square_sums(std::span<const float> values, std::int64_t block_elements) {
  const auto step = static_cast<std::size_t>(block_elements);
  std::vector<double> sums;
  sums.reserve(values.size() / step);
  for (std::size_t begin = 0; begin < values.size(); begin += step) {
    sums.push_back(square_sum(values.subspan(begin, step)));
  }
  return sums;
}

double norm_of(std::span<const double> square_sums) {
  return std::sqrt(std::accumulate(square_sums.begin(), square_sums.end(), 0.0));
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace lrun::optim
