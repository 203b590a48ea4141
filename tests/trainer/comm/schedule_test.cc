#include "trainer/comm/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "trainer/comm/tree.h"

namespace lrun::comm {
namespace {

Collective make_collective(OperationKind kind, std::int64_t elements, int world_size, int leaves) {
  Collective collective{.kind = kind, .elements = elements, .element_bytes = 4};
  collective.shards = even_shards(elements, world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    const auto block = block_of(GlobalRank{rank}, world_size, leaves);
    collective.subtrees.push_back(static_cast<int>(complete_subtrees(block, leaves).size()));
  }
  return collective;
}

void expect_tiles(const std::vector<Frame>& frames, Frame::Kind kind, Range whole) {
  std::int64_t next = whole.begin;
  for (const Frame& frame : frames) {
    if (frame.kind != kind) continue;
    RC_ASSERT(frame.range.begin == next);
    RC_ASSERT(frame.range.size() > 0);
    next = frame.range.end;
  }
  RC_ASSERT(next == whole.end);
}

RC_GTEST_PROP(Schedule, FramesCoverWhatTravelsAndFit, ()) {
  const int world_size = *rc::gen::inRange(2, 9);
  const int leaves = *rc::gen::inRange(1, 65);
  const auto elements = *rc::gen::inRange<std::int64_t>(0, 200'000);
  const auto kind = *rc::gen::element(OperationKind::ReduceScatter, OperationKind::AllGather,
                                      OperationKind::AllReduce);
  const Collective collective = make_collective(kind, elements, world_size, leaves);
  const GlobalRank from{*rc::gen::inRange(0, world_size)};
  const GlobalRank to{*rc::gen::inRange(0, world_size)};
  const int subtrees = collective.subtrees[static_cast<std::size_t>(from.value)];
  const auto frames = frames_between(collective, from, to);
  for (const Frame& frame : frames) {
    const int terms = frame.kind == Frame::Kind::Terms ? subtrees : 1;
    RC_ASSERT(frame.range.size() * 4 * terms <= static_cast<std::int64_t>(kFrameBytesMax));
  }
  const Range whole{0, elements};
  const auto shard = [&](GlobalRank rank) {
    return collective.shards[static_cast<std::size_t>(rank.value)];
  };
  const bool gathers = kind == OperationKind::AllGather ||
                       (kind == OperationKind::AllReduce && !is_one_hop(collective));
  if (kind != OperationKind::AllGather && subtrees > 0) {
    expect_tiles(frames, Frame::Kind::Terms, is_one_hop(collective) ? whole : shard(to));
  }
  if (gathers) expect_tiles(frames, Frame::Kind::Values, shard(from));
}

// Values of chunk i may leave when the receiver's terms for chunk i + 1 have: no rank then waits in
// a circle, however little room a link has.
RC_GTEST_PROP(Schedule, ValuesStayBehindTheTermsOfTheSameLink, ()) {
  const int world_size = *rc::gen::inRange(2, 9);
  const auto elements = *rc::gen::inRange<std::int64_t>(10'000, 2'000'000);
  const auto collective = make_collective(OperationKind::AllReduce, elements, world_size, 16);
  const auto frames = frames_between(collective, GlobalRank{0}, GlobalRank{world_size - 1});
  int terms = 0;
  const int last = static_cast<int>(chunks_of(collective, GlobalRank{world_size - 1}).size());
  for (const Frame& frame : frames) {
    if (frame.kind == Frame::Kind::Terms) RC_ASSERT(frame.chunk == terms++);
    if (frame.kind == Frame::Kind::Values) RC_ASSERT(terms == last || frame.chunk < terms);
  }
}

TEST(Schedule, SmallReductionsTakeOneHop) {
  EXPECT_TRUE(is_one_hop(make_collective(OperationKind::AllReduce, 1024, 4, 8)));
  EXPECT_FALSE(is_one_hop(make_collective(OperationKind::AllReduce, 1 << 20, 4, 8)));
  EXPECT_FALSE(is_one_hop(make_collective(OperationKind::ReduceScatter, 1024, 4, 8)));
}

TEST(Schedule, OnlyTheRootOfABroadcastSends) {
  Collective collective{.kind = OperationKind::Broadcast, .elements = 300'000, .root = {2}};
  EXPECT_EQ(frames_between(collective, GlobalRank{2}, GlobalRank{0}).size(), 3u);
  EXPECT_TRUE(frames_between(collective, GlobalRank{0}, GlobalRank{2}).empty());
}

TEST(Header, MismatchNamesBothRanksAndCalls) {
  OperationHeader mine{.sequence = 17, .kind = OperationKind::AllReduce, .leaves = 8};
  mine.element_bytes = 4;
  mine.elements = 1024;
  OperationHeader theirs = mine;
  EXPECT_FALSE(find_mismatch(mine, GlobalRank{0}, theirs, GlobalRank{2}));
  theirs.elements = 1000;
  EXPECT_EQ(find_mismatch(mine, GlobalRank{0}, theirs, GlobalRank{2}),
            "operation 17 differs: rank 0 called all_reduce of 1024 elements of 4 bytes over 8 "
            "leaves, rank 2 called all_reduce of 1000 elements of 4 bytes over 8 leaves");
  theirs = mine;
  theirs.shards = 1;
  EXPECT_NE(find_mismatch(mine, GlobalRank{0}, theirs, GlobalRank{2})->find("other ranges"),
            std::string::npos);
  theirs = {};
  theirs.magic = 0;
  EXPECT_EQ(find_mismatch(mine, GlobalRank{0}, theirs, GlobalRank{2}),
            "rank 2 sent something that is no operation header");
}

}  // namespace
}  // namespace lrun::comm
