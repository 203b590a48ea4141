// Every sample once per epoch, for any world size and any interruption.
#include "trainer/data/elastic_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "trainer/comm/tree.h"

namespace lrun::data {
namespace {

using Samples = std::vector<std::int64_t>;

ElasticSampler::Options options_of(std::int64_t samples, int leaves, int leaf_size) {
  return {.seed = 7, .samples = samples, .leaves = leaves, .leaf_size = leaf_size};
}

void append(const ElasticSampler& sampler, Position position, int leaf, Samples* seen) {
  const Samples samples = sampler.leaf(position, leaf);
  seen->insert(seen->end(), samples.begin(), samples.end());
}

Samples whole_batch(const ElasticSampler& sampler, Position position) {
  Samples seen;
  for (int leaf = 0; leaf < sampler.options().leaves; ++leaf)
    append(sampler, position, leaf, &seen);
  return seen;
}

Samples epoch_order(const ElasticSampler& sampler, std::int64_t epoch) {
  Samples seen;
  for (Position at{.epoch = epoch, .consumed = 0}; at.epoch == epoch; at = sampler.after(at)) {
    const Samples batch = whole_batch(sampler, at);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  return seen;
}

Samples sorted(Samples samples) {
  std::ranges::sort(samples);
  return samples;
}

Samples all_of(std::int64_t count) {
  Samples samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

TEST(ElasticSampler, VisitsEverySampleOncePerEpoch) {
  for (const std::int64_t samples : {1, 2, 3, 5, 16, 17, 63, 64, 65, 1000, 4097}) {
    const ElasticSampler sampler(options_of(samples, 3, 4));
    for (const std::int64_t epoch : {0, 1, 9}) {
      EXPECT_EQ(sorted(epoch_order(sampler, epoch)), all_of(samples)) << samples << " samples";
    }
  }
}

// meta-pytorch/data#1440, pytorch/pytorch#31771: an order that is the same in every epoch.
TEST(ElasticSampler, OrdersDifferByEpochAndBySeed) {
  const ElasticSampler sampler(options_of(500, 4, 8));
  ElasticSampler::Options other = sampler.options();
  other.seed = 8;
  EXPECT_NE(epoch_order(sampler, 0), epoch_order(sampler, 1));
  EXPECT_NE(epoch_order(sampler, 0), epoch_order(ElasticSampler(other), 0));
  EXPECT_EQ(epoch_order(sampler, 1), epoch_order(ElasticSampler(sampler.options()), 1));
}

TEST(ElasticSampler, ShufflesWell) {
  const ElasticSampler sampler(options_of(1000, 1, 10));
  int in_place = 0;
  int adjacent = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    in_place += sampler.sample_at(0, index) == index ? 1 : 0;
    if (index > 0)
      adjacent += sampler.sample_at(0, index) == sampler.sample_at(0, index - 1) + 1 ? 1 : 0;
  }
  // One of each is expected of a random permutation; ten or more has probability 1e-7.
  EXPECT_LT(in_place, 10);
  EXPECT_LT(adjacent, 10);
}

TEST(ElasticSampler, KeepsTheOrderWithoutShuffling) {
  ElasticSampler::Options options = options_of(10, 2, 3);
  options.shuffle = false;
  EXPECT_EQ(epoch_order(ElasticSampler(options), 3), all_of(10));
}

// pytorch/pytorch#25162: evaluation and training count samples twice through padding.
TEST(ElasticSampler, LastBatchIsShortNeverPadded) {
  const ElasticSampler sampler(options_of(17, 3, 4));
  const Position last = sampler.after({});
  EXPECT_EQ(sampler.batch_size(last), 5);
  EXPECT_EQ(sampler.leaf(last, 0).size(), 4U);
  EXPECT_EQ(sampler.leaf(last, 1).size(), 1U);
  EXPECT_TRUE(sampler.leaf(last, 2).empty());
}

// meta-pytorch/data#1437: a state taken at an epoch's end makes the next epoch empty.
TEST(ElasticSampler, TheEndOfAnEpochIsTheBeginningOfTheNext) {
  const ElasticSampler sampler(options_of(24, 3, 4));
  const Position second = sampler.after({});
  EXPECT_EQ(sampler.after(second), (Position{.epoch = 1, .consumed = 0}));
}

// B119: five kills at any step; every sample once per epoch, over all ranks.
TEST(ElasticSampler, B119_EveryInterruptionResumesAtTheNextSample) {
  const ElasticSampler sampler(options_of(997, 12, 4));
  Samples undisturbed;
  for (Position at{}; at.epoch < 2; at = sampler.after(at)) {
    const Samples batch = whole_batch(sampler, at);
    undisturbed.insert(undisturbed.end(), batch.begin(), batch.end());
  }
  Samples seen;
  Position saved{};
  int steps_until_kill = 3;
  for (const int world_size : {4, 3, 1, 2, 6, 12}) {
    // Each life knows nothing but the saved position, and has another number of workers.
    const ElasticSampler reborn(sampler.options());
    const bool is_last_life = world_size == 12;
    for (int step = 0; saved.epoch < 2 && (is_last_life || step < steps_until_kill); ++step) {
      for (int rank = 0; rank < world_size; ++rank) {
        const comm::Subtree block = comm::block_of(GlobalRank{rank}, world_size, 12);
        for (int leaf = block.first; leaf < block.last; ++leaf) append(reborn, saved, leaf, &seen);
      }
      saved = reborn.after(saved);
    }
    ++steps_until_kill;
  }
  EXPECT_EQ(seen, undisturbed);
}

TEST(ElasticSampler, LimitedEpochsEndEarlyAndStayDisjoint) {
  ElasticSampler::Options options = options_of(100, 2, 5);
  options.batches_per_epoch = 3;
  const ElasticSampler sampler(options);
  const Samples order = epoch_order(sampler, 0);
  EXPECT_EQ(order.size(), 30U);
  EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 30U);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
}

TEST(ElasticSampler, RefusesWhatIsNotPositive) {
  EXPECT_THROW(ElasticSampler(options_of(0, 1, 1)), std::invalid_argument);
  EXPECT_THROW(ElasticSampler(options_of(1, 0, 1)), std::invalid_argument);
  EXPECT_THROW(ElasticSampler(options_of(1, 1, 0)), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::data
