#include "tests/sim/random.h"

#include <cmath>

namespace lrun::sim {

// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

std::int64_t Random::between(std::int64_t least, std::int64_t most) {
  if (most <= least) return least;
  const auto span = static_cast<std::uint64_t>(most - least) + 1;
  return least + static_cast<std::int64_t>(below(span));
}

Duration Random::between(Duration least, Duration most) {
  return Duration(
      between(static_cast<std::int64_t>(least.count()), static_cast<std::int64_t>(most.count())));
}

double Random::between_logarithmic(double least, double most) {
  return least * std::pow(most / least, unit());
}

// In whole microseconds, so that no two mathematics libraries disagree in the last bit.
Duration Random::between_logarithmic(Duration least, Duration most) {
  using std::chrono::microseconds;
  const double low = static_cast<double>(std::chrono::duration_cast<microseconds>(least).count());
  const double high = static_cast<double>(std::chrono::duration_cast<microseconds>(most).count());
  return microseconds(static_cast<std::int64_t>(between_logarithmic(low, high)));
}

}  // namespace lrun::sim
