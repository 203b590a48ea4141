// Every collective over every transport: results bit for bit, bytes exactly.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/trainer/comm/world.h"

namespace lrun::comm {
namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Ranges of very different sizes, some empty.
std::vector<Range> uneven_shards(std::int64_t elements, int world_size) {
  std::vector<Range> shards;
  std::int64_t begin = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    std::int64_t end = rank + 1 == world_size ? elements : begin + (rank % 3) * elements / 7;
    end = std::min(end, elements);
    shards.push_back({begin, end});
    begin = end;
  }
  return shards;
}

class Collectives : public testing::TestWithParam<std::tuple<int, Transport>> {
 protected:
  World world() const {
    return {.size = std::get<0>(GetParam()), .transport = std::get<1>(GetParam())};
  }
};

void expect_scattered(Comm& comm, int leaves, const std::vector<Range>& shards,
                      std::span<const float> expected) {
  Terms mine(comm.rank(), comm.world_size(), leaves, static_cast<std::int64_t>(expected.size()));
  const Range own = shards[static_cast<std::size_t>(comm.rank().value)];
  std::vector<float> result(static_cast<std::size_t>(own.size()));
  comm.reduce_scatter(mine.sums, leaves, shards, result).wait();
  EXPECT_TRUE(same_bits(result, expected.subspan(static_cast<std::size_t>(own.begin),
                                                 static_cast<std::size_t>(own.size()))))
      << "rank " << comm.rank().value << " K=" << leaves << " elements " << expected.size();
}

TEST_P(Collectives, ReduceScatterHasTheBitsOfTheTree) {
  for (const int leaves : {4, 8, 12, 16}) {
    if (leaves < world().size) continue;
    for (const std::int64_t elements : {0, 1, 5, 4099, 150'001}) {
      const auto expected = tree_sum({0, leaves}, elements);
      world().run([&](Comm& comm) {
        expect_scattered(comm, leaves, even_shards(elements, comm.world_size()), expected);
        expect_scattered(comm, leaves, uneven_shards(elements, comm.world_size()), expected);
      });
    }
  }
}

TEST_P(Collectives, FewerLeavesThanRanksLeaveSomeRanksWithoutTerms) {
  const auto expected = tree_sum({0, 3}, 5000);
  world().run([&](Comm& comm) {
    expect_scattered(comm, 3, even_shards(5000, comm.world_size()), expected);
  });
}

TEST_P(Collectives, AllReduceHasTheBitsOfTheTree) {
  for (const int leaves : {8, 12}) {
    for (const std::int64_t elements : {0, 1, 1000, 4097, 300'007}) {
      const auto expected = tree_sum({0, leaves}, elements);
      world().run([&](Comm& comm) {
        Terms mine(comm.rank(), comm.world_size(), leaves, elements);
        std::vector<float> result(static_cast<std::size_t>(elements));
        comm.all_reduce(mine.sums, leaves, result).wait();
        EXPECT_TRUE(same_bits(result, expected)) << "rank " << comm.rank().value;
        // In place, in the last subtree's own memory.
        comm.all_reduce(mine.sums, leaves, mine.values.back()).wait();
        EXPECT_TRUE(same_bits(mine.values.back(), expected)) << "in place " << comm.rank().value;
      });
    }
  }
}

TEST_P(Collectives, ReduceScatterInPlace) {
  const auto expected = tree_sum({0, 8}, 100'003);
  world().run([&](Comm& comm) {
    Terms mine(comm.rank(), comm.world_size(), 8, 100'003);
    const auto shards = even_shards(100'003, comm.world_size());
    const Range own = shards[static_cast<std::size_t>(comm.rank().value)];
    const auto begin = static_cast<std::size_t>(own.begin);
    const auto size = static_cast<std::size_t>(own.size());
    const auto result = std::span(mine.values.front()).subspan(begin, size);
    comm.reduce_scatter(mine.sums, 8, shards, result).wait();
    EXPECT_TRUE(same_bits(result, std::span(expected).subspan(begin, size)));
  });
}

TEST_P(Collectives, AllGatherGivesEveryRankAllRanges) {
  for (const std::int64_t elements : {0, 3, 100'000}) {
    const auto expected = leaf_values(1, elements);
    world().run([&](Comm& comm) {
      for (const auto& shards :
           {even_shards(elements, comm.world_size()), uneven_shards(elements, comm.world_size())}) {
        std::vector<float> whole(static_cast<std::size_t>(elements), -1);
        const Range own = shards[static_cast<std::size_t>(comm.rank().value)];
        std::copy(expected.begin() + own.begin, expected.begin() + own.end,
                  whole.begin() + own.begin);
        comm.all_gather(whole, shards).wait();
        EXPECT_TRUE(same_bits(whole, expected)) << "rank " << comm.rank().value;
      }
    });
  }
}

// Each rank's message is as many bytes of its rank's number as `size` says.
void expect_gathered(Comm& comm, const std::function<std::size_t(std::size_t)>& size) {
  const auto message = [&](std::size_t rank) {
    return std::vector<std::byte>(size(rank), std::byte{static_cast<unsigned char>(rank)});
  };
  const auto all = comm.all_gather_bytes(message(static_cast<std::size_t>(comm.rank().value)));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(comm.world_size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], message(rank));
}

TEST_P(Collectives, BytesOfEveryRankInRankOrder) {
  world().run([](Comm& comm) {
    expect_gathered(comm, [](std::size_t) { return 0; });
    expect_gathered(comm, [](std::size_t rank) { return rank * 30; });
    // Around the size up to which one operation is enough.
    for (const std::size_t most : {247, 248, 249}) {
      expect_gathered(comm, [most](std::size_t rank) { return rank == 0 ? most : 3; });
    }
    expect_gathered(comm, [](std::size_t rank) { return rank * 100'000; });
  });
}

TEST_P(Collectives, ShortMessagesTakeOneOperation) {
  world().run([](Comm& comm) {
    comm.all_gather_bytes(std::vector<std::byte>(248));
    EXPECT_EQ(comm.counters().operations, 1u);
    comm.all_gather_bytes(std::vector<std::byte>(249));
    EXPECT_EQ(comm.counters().operations, 3u);
  });
}

TEST_P(Collectives, BroadcastFromEachRank) {
  world().run([](Comm& comm) {
    for (int root = 0; root < comm.world_size(); ++root) {
      std::vector<std::byte> bytes(300'001,
                                   std::byte{static_cast<unsigned char>(comm.rank().value)});
      comm.broadcast(bytes, GlobalRank{root});
      EXPECT_EQ(bytes,
                std::vector<std::byte>(300'001, std::byte{static_cast<unsigned char>(root)}));
    }
  });
}

TEST_P(Collectives, ManySmallOperationsInARow) {
  const auto expected = tree_sum({0, 8}, 10);
  world().run([&](Comm& comm) {
    Terms mine(comm.rank(), comm.world_size(), 8, 10);
    std::vector<float> result(10);
    for (int i = 0; i < 1000; ++i) {
      std::fill(result.begin(), result.end(), 0.0f);
      comm.all_reduce(mine.sums, 8, result).wait();
      ASSERT_TRUE(same_bits(result, expected)) << i;
    }
    EXPECT_EQ(comm.counters().operations, 1000u);
  });
}

// More operations under way than the queue holds, of all sizes.
TEST_P(Collectives, OperationsUnderWayTogether) {
  world().run([](Comm& comm) {
    const std::int64_t elements = 60'000;
    Terms mine(comm.rank(), comm.world_size(), 8, elements);
    std::vector<std::vector<float>> results(300);
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto size = static_cast<std::int64_t>(i * 200);
      results[i].resize(static_cast<std::size_t>(size));
      std::vector<SubtreeSum> parts;
      for (const SubtreeSum& sum : mine.sums) {
        parts.push_back({sum.subtree, sum.values.first(static_cast<std::size_t>(size))});
      }
      handles.push_back(comm.all_reduce(parts, 8, results[i]));
    }
    for (Handle& handle : handles) handle.wait();
    const auto expected = tree_sum({0, 8}, elements);
    for (const auto& result : results) {
      EXPECT_TRUE(same_bits(result, std::span(expected).first(result.size())));
    }
  });
}

std::string to_test_name(const testing::TestParamInfo<std::tuple<int, Transport>>& test) {
  return to_name(std::get<1>(test.param)) + std::to_string(std::get<0>(test.param));
}

INSTANTIATE_TEST_SUITE_P(Worlds, Collectives,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 6, 8),
                                          testing::Values(Transport::SharedMemory, Transport::Tcp,
                                                          Transport::Mixed)),
                         to_test_name);

// An ordinary reduce-scatter sends (N−1)/N of the buffer, an all-gather as much again.
TEST(Bytes, PowerOfTwoWorldsSendWhatAnOrdinaryReduceScatterSends) {
  for (const int size : {2, 4, 8}) {
    World{.size = size}.run([&](Comm& comm) {
      const std::int64_t elements = 80'000;
      const auto share = static_cast<std::uint64_t>(elements * 4 * (size - 1) / size);
      Terms mine(comm.rank(), size, 16, elements);
      const auto shards = even_shards(elements, size);
      std::vector<float> result(static_cast<std::size_t>(elements / size));
      comm.reduce_scatter(mine.sums, 16, shards, result).wait();
      EXPECT_EQ(comm.counters().sent_bytes, share);
      EXPECT_EQ(comm.counters().received_bytes, share);
      std::vector<float> whole(static_cast<std::size_t>(elements));
      comm.all_gather(whole, shards).wait();
      EXPECT_EQ(comm.counters().sent_bytes, 2 * share);
      comm.all_reduce(mine.sums, 16, whole).wait();
      EXPECT_EQ(comm.counters().sent_bytes, 4 * share);
    });
  }
}

TEST(Bytes, ManyMebibytesNeedNoMoreMemoryThanTheBuffers) {
  for (const Transport transport : {Transport::SharedMemory, Transport::Tcp}) {
    World{.size = 2, .transport = transport}.run([](Comm& comm) {
      const std::size_t elements = 16 << 20;  // 64 MiB
      std::vector<float> mine(elements, static_cast<float>(comm.rank().value + 1));
      const SubtreeSum sum{{comm.rank().value * 2, comm.rank().value * 2 + 2}, mine};
      std::vector<float> result(elements);
      comm.all_reduce({&sum, 1}, 4, result).wait();
      EXPECT_TRUE(std::all_of(result.begin(), result.end(), [](float x) { return x == 3.0f; }));
    });
  }
}

}  // namespace
}  // namespace lrun::comm
