#include "trainer/parallel/seeds.h"

#include <gtest/gtest.h>

#include <set>

namespace lrun::parallel {
namespace {

TEST(Seeds, SplitMix64AgreesWithItsReference) {
  // The first outputs of the authors' generator with state 0 and 1234567.
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix(1234567), 6457827717110365317u);
}

TEST(Seeds, EveryLeafOfEveryStepHasItsOwnStream) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::int64_t step = 0; step < 100; ++step) {
      for (int leaf = 0; leaf < 64; ++leaf) seeds.insert(leaf_seed(seed, step, leaf));
    }
  }
  EXPECT_EQ(seeds.size(), 4u * 100 * 64);
}

}  // namespace
}  // namespace lrun::parallel
