#include "trainer/parallel/buckets.h"

#include <gtest/gtest.h>

namespace lrun::parallel {
namespace {

FlatLayout layers(int count, std::int64_t elements) {
  std::vector<NamedShape> shapes;
  for (int i = 0; i < count; ++i) shapes.push_back({"layer" + std::to_string(i), {elements}});
  return make_layout(shapes);
}

TEST(Buckets, CoverTheVectorFromTheEndOnSlotBorders) {
  const FlatLayout layout = layers(20, 1000);
  const auto buckets = make_buckets(layout, 3 * 4096);
  std::int64_t begin = layout.elements;
  std::size_t next_slot = layout.slots.size();
  for (const Bucket& bucket : buckets) {
    EXPECT_EQ(bucket.range.end, begin);
    begin = bucket.range.begin;
    for (const std::size_t slot : bucket.slots) EXPECT_EQ(slot, --next_slot);
    EXPECT_EQ(layout.slots[bucket.slots.back()].offset, bucket.range.begin);
  }
  EXPECT_EQ(begin, 0);
  EXPECT_EQ(next_slot, 0u);
}

TEST(Buckets, FirstIsSmallOthersFillUpToTheLimit) {
  const FlatLayout layout = layers(32, 1 << 16);  // 256 KiB each
  const auto buckets = make_buckets(layout, 2 << 20);
  EXPECT_EQ(buckets[0].slots.size(), 4u);
  for (std::size_t i = 1; i + 1 < buckets.size(); ++i) EXPECT_EQ(buckets[i].slots.size(), 8u);
}

TEST(Buckets, AParameterBeyondTheLimitIsABucketByItself) {
  const auto buckets = make_buckets(make_layout({{"a", {64}}, {"big", {9999}}, {"c", {64}}}), 1024);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[1].slots, (std::vector<std::size_t>{1}));
}

TEST(Buckets, ShardsWithinABucketAreContiguous) {
  const std::vector<comm::Range> shards{{0, 100}, {100, 200}, {200, 300}};
  EXPECT_EQ(shards_within({150, 250}, shards),
            (std::vector<comm::Range>{{0, 0}, {0, 50}, {50, 100}}));
}

TEST(BucketGate, ReleasesInIndexOrderWhateverTheArrival) {
  const FlatLayout layout = layers(4, 1000);
  const auto buckets = make_buckets(layout, 4000);  // one slot each: slots 3, 2, 1, 0
  ASSERT_EQ(buckets.size(), 4u);
  BucketGate gate(buckets, layout.slots.size());
  for (int pass = 0; pass < 2; ++pass) {
    gate.complete(1);
    EXPECT_FALSE(gate.take_next());
    gate.complete(3);
    EXPECT_TRUE(gate.take_next());
    EXPECT_FALSE(gate.take_next());
    gate.complete(2);
    EXPECT_TRUE(gate.take_next());
    EXPECT_TRUE(gate.take_next());
    EXPECT_FALSE(gate.take_next());
    gate.complete(0);
    EXPECT_TRUE(gate.take_next());
    EXPECT_EQ(gate.released(), 4u);
    EXPECT_FALSE(gate.take_next());
    gate.reset();
  }
}

}  // namespace
}  // namespace lrun::parallel
