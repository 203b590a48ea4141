// Ranks as processes, each with its own random generator: dropout draws the same numbers for a leaf
// whoever computes it.
#include <gtest/gtest.h>

#include "tests/trainer/parallel/small_model.h"
#include "tests/trainer/parallel/worlds.h"

namespace lrun::parallel {
namespace {

std::string hash_of(int world_size, Options options, double dropout = 0.3) {
  options.max_norm = 1;
  const auto hashes = run_processes(world_size, [&](comm::Comm& comm) {
    SmallModel model({.dropout = dropout});
    DataParallel training(named_parameters(model), comm, options);
    train(training, model, 20, 3e-3);
    return training.weights_sha256();
  });
  for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes[0]);
  return hashes[0];
}

TEST(Dropout, IsTheSameForEveryWorldSize) {
  const std::string alone = hash_of(1, {.leaves = 12, .seed = 7});
  ASSERT_EQ(alone.size(), 64u);
  for (const int world_size : {2, 3, 4, 6}) {
    EXPECT_EQ(hash_of(world_size, {.leaves = 12, .zero_stage = world_size % 2, .seed = 7}), alone)
        << "world size " << world_size;
  }
}

TEST(Dropout, DependsOnTheSeed) {
  EXPECT_NE(hash_of(1, {.leaves = 4, .seed = 1}), hash_of(1, {.leaves = 4, .seed = 2}));
  EXPECT_EQ(hash_of(1, {.leaves = 4, .seed = 1}, 0), hash_of(1, {.leaves = 4, .seed = 2}, 0))
      << "without dropout nothing is random";
}

}  // namespace
}  // namespace lrun::parallel
