// Random numbers that are the same on every machine.
//
// Owns one stream (SplitMix64) and the few distributions the simulation needs; the standard
// library's distributions differ between implementations.
#pragma once

#include <cstdint>

#include "proto/ids.h"

namespace lrun::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Uniform in [0, count); 0 for a count of 0. The bias of the remainder is below 2⁻³² here.
  std::uint64_t below(std::uint64_t count) { return count == 0 ? 0 : next() % count; }
  // Uniform in [least, most].
  std::int64_t between(std::int64_t least, std::int64_t most);
  Duration between(Duration least, Duration most);
  // Wildly different weights: uniform in the logarithm between the two.
  double between_logarithmic(double least, double most);
  Duration between_logarithmic(Duration least, Duration most);
  bool chance(double probability) { return probability > 0 && unit() < probability; }
  // A stream of its own, so that drawing more of one thing does not change another.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace lrun::sim
