// Seeds of the random streams: a leaf draws the same numbers whoever computes it, in any run.
//
// Pure. Called by DataParallel before each leaf.
#pragma once

#include <cstdint>

namespace lrun::parallel {

// One round of SplitMix64 (Steele, Lea & Flood 2014): a bijection that spreads every bit.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// `step` is the index of the optimizer step, `leaf` of the leaf within the global batch.
constexpr std::uint64_t leaf_seed(std::uint64_t seed, std::int64_t step, int leaf) {
  return mix(mix(mix(seed) ^ static_cast<std::uint64_t>(step)) ^ static_cast<std::uint64_t>(leaf));
}

}  // namespace lrun::parallel
