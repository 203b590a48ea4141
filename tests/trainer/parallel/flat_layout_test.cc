#include "trainer/parallel/flat_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace lrun::parallel {
namespace {

FlatLayout three_parameters() {
  return make_layout({{"weight", {100, 50}}, {"bias", {17}}, {"scale", {}}});
}

TEST(FlatLayout, SlotsFollowEachOtherOn64Bytes) {
  const FlatLayout layout = three_parameters();
  ASSERT_EQ(layout.slots.size(), 3u);
  EXPECT_EQ(layout.slots[0], (Slot{"weight", {100, 50}, 0, 5000}));
  EXPECT_EQ(layout.slots[1], (Slot{"bias", {17}, 5008, 17}));
  EXPECT_EQ(layout.slots[2], (Slot{"scale", {}, 5040, 1}));
}

TEST(FlatLayout, IsPaddedToWholeNormBlocks) {
  EXPECT_EQ(three_parameters().elements, 2 * kNormBlockElements);
  EXPECT_EQ(make_layout({{"exact", {kNormBlockElements}}}).elements, kNormBlockElements);
}

TEST(FlatLayout, ShardsCoverTheVectorInWholeNormBlocks) {
  const FlatLayout layout = make_layout({{"weight", {10 * kNormBlockElements}}});
  for (int world_size = 1; world_size <= 13; ++world_size) {
    const auto shards = layout.shards(world_size);
    ASSERT_EQ(shards.size(), static_cast<std::size_t>(world_size));
    std::int64_t end = 0;
    for (const comm::Range& shard : shards) {
      EXPECT_EQ(shard.begin, end);
      EXPECT_EQ(shard.size() % kNormBlockElements, 0);
      EXPECT_LE(shard.size(), (10 / world_size + 1) * kNormBlockElements);
      end = shard.end;
    }
    EXPECT_EQ(end, layout.elements);
  }
}

TEST(FlatLayout, NamesAreUnique) {
  try {
    make_layout({{"fc.weight", {1}}, {"fc.weight", {1}}});
    FAIL() << "two parameters of one name were accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'fc.weight'"));
  }
}

}  // namespace
}  // namespace lrun::parallel
