#include "agent/retry_backoff.h"

#include <algorithm>

namespace lrun::agent {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): one addition and a mix, the same on every machine.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

}  // namespace

RetryBackoff::RetryBackoff(std::uint64_t seed, Limits limits)
    : limits_(limits), current_(limits.first), random_(seed) {}

Duration RetryBackoff::next() {
  const auto half = static_cast<std::uint64_t>(current_.count() / 2);
  const auto taken_off = static_cast<Duration::rep>(next_random(random_) % (half + 1));
  const Duration wait = current_ - Duration(taken_off);
  current_ = std::min(current_ * 2, limits_.longest);
  return wait;
}

}  // namespace lrun::agent
