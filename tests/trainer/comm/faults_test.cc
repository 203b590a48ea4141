// What goes wrong is found, named and ends every rank: aborts, goodbyes, mismatches, deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/trainer/comm/process_world.h"
#include "tests/trainer/comm/world.h"

namespace lrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

class Faults : public testing::TestWithParam<Transport> {
 protected:
  World world(int size, milliseconds deadline = std::chrono::seconds(60)) const {
    return {.size = size, .transport = GetParam(), .deadline = deadline};
  }
};

// Runs `program` on all ranks and returns the outcome of each.
std::vector<std::string> outcomes(const World& world, const std::function<void(Comm&)>& program) {
  std::vector<std::string> texts(static_cast<std::size_t>(world.size));
  world.run([&](Comm& comm) {
    auto& text = texts[static_cast<std::size_t>(comm.rank().value)];
    text = outcome_of([&] { program(comm); });
    // Stay until all have their outcome: leaving would be a second fault.
    outcome_of([&] { comm.barrier(); });
  });
  return texts;
}

// How long after an abort by rank 0 the last rank has come back from its operation.
milliseconds time_to_abort(const World& world) {
  std::promise<void> may_abort;
  std::atomic<int> waiting = 0;
  std::atomic<steady_clock::rep> aborted_at = 0;
  std::atomic<steady_clock::rep> last_back_at = 0;
  auto signal = may_abort.get_future();
  const auto texts = outcomes(world, [&](Comm& comm) {
    if (comm.rank().value == 0) {
      signal.wait();
      aborted_at = steady_clock::now().time_since_epoch().count();
      comm.abort("no more");
      return comm.barrier();
    }
    if (++waiting == world.size - 1) may_abort.set_value();
    const std::string text = outcome_of([&] { comm.barrier(); });
    last_back_at = std::max(last_back_at.load(), steady_clock::now().time_since_epoch().count());
    EXPECT_THAT(text, StartsWith("Aborted: rank 0 aborted: no more"));
  });
  return std::chrono::duration_cast<milliseconds>(
      steady_clock::duration(last_back_at - aborted_at));
}

TEST_P(Faults, AbortEndsPendingOperationsEverywhere) {
  auto fastest = milliseconds::max();
  for (int i = 0; i < 10; ++i) fastest = std::min(fastest, time_to_abort(world(4)));
  // The best of ten: a loaded machine may delay any single one.
  EXPECT_LE(fastest, milliseconds(10));
}

TEST_P(Faults, AbortOvertakesPayloadThatNobodyReads) {
  const auto texts = outcomes(world(2), [](Comm& comm) {
    std::vector<float> whole(8 << 20);
    if (comm.rank().value == 1) {
      // Rank 0 has filled every buffer on the way when this comes.
      comm.abort("stuck");
      return comm.barrier();
    }
    comm.all_gather(whole, even_shards(8 << 20, 2)).wait();
  });
  EXPECT_THAT(texts, Each(StartsWith("Aborted: ")));
}

TEST_P(Faults, LaterOperationsThrowTheSameErrorAtOnce) {
  world(2).run([](Comm& comm) {
    if (comm.rank().value == 1) comm.abort("first");
    const std::string first = outcome_of([&] { comm.barrier(); });
    EXPECT_THAT(first, HasSubstr("first"));
    comm.abort("second");
    std::vector<float> whole(10);
    EXPECT_EQ(outcome_of([&] { comm.barrier(); }), first);
    EXPECT_EQ(outcome_of([&] { comm.all_gather(whole, even_shards(10, 2)).wait(); }), first);
    EXPECT_EQ(outcome_of([&] { comm.all_gather_bytes({}); }), first);
  });
}

TEST_P(Faults, ARankThatLeavesIsNamed) {
  std::vector<std::string> texts(3);
  world(3).run([&](Comm& comm) {
    if (comm.rank().value == 1) return;
    texts[static_cast<std::size_t>(comm.rank().value)] = outcome_of([&] { comm.barrier(); });
  });
  EXPECT_THAT(texts[0], StartsWith("PeerLost 1: operation 0 (barrier) lost rank 1"));
  EXPECT_THAT(texts[2], StartsWith("PeerLost 1: operation 0 (barrier) lost rank 1"));
}

TEST_P(Faults, DifferentOperationsAreNamed) {
  const auto texts = outcomes(world(3), [](Comm& comm) {
    std::vector<float> whole(10);
    comm.barrier();
    if (comm.rank().value == 1) return comm.barrier();
    comm.all_gather(whole, even_shards(10, 3)).wait();
  });
  EXPECT_THAT(texts, Each(StartsWith("Mismatch: operation 1 differs: ")));
  EXPECT_THAT(texts, Each(HasSubstr("called all_gather of 10 elements of 4 bytes")));
  EXPECT_THAT(texts, Each(HasSubstr("rank 1 called barrier")));
}

TEST_P(Faults, DifferentSizesAreNamed) {
  const auto texts = outcomes(world(2), [](Comm& comm) {
    const std::int64_t elements = comm.rank().value == 0 ? 1'000'000 : 999'999;
    Terms mine(comm.rank(), 2, 4, elements);
    std::vector<float> result(static_cast<std::size_t>(elements));
    comm.all_reduce(mine.sums, 4, result).wait();
  });
  EXPECT_THAT(texts, Each(HasSubstr("all_reduce of 1000000 elements of 4 bytes over 4 leaves")));
  EXPECT_THAT(texts, Each(HasSubstr("all_reduce of 999999 elements of 4 bytes over 4 leaves")));
}

TEST_P(Faults, DifferentRangesAreNamed) {
  const auto texts = outcomes(world(2), [](Comm& comm) {
    std::vector<float> whole(10);
    const std::int64_t border = comm.rank().value == 0 ? 4 : 5;
    comm.all_gather(whole, std::vector<Range>{{0, border}, {border, 10}}).wait();
  });
  EXPECT_THAT(texts, Each(HasSubstr("with other ranges for the ranks")));
}

// The deadline leaves all others time to get as far as they can on a loaded machine.
TEST_P(Faults, ASilentRankIsNamedByTheDeadline) {
  std::promise<void> others_are_back;
  std::atomic<int> back = 0;
  auto signal = others_are_back.get_future();
  const auto texts = outcomes(world(4, milliseconds(2000)), [&](Comm& comm) {
    if (comm.rank().value == 2) return signal.wait();
    const std::string text = outcome_of([&] {
      Terms mine(comm.rank(), 4, 8, 500'000);
      std::vector<float> result(500'000);
      comm.all_reduce(mine.sums, 8, result).wait();
    });
    if (++back == 3) others_are_back.set_value();
    EXPECT_THAT(text, StartsWith("DeadlineExceeded: operation 0 (all_reduce of 500000 elements of "
                                 "4 bytes over 8 leaves) did not end within 2000 ms; rank "));
    EXPECT_THAT(text, testing::EndsWith("waits for rank 2"));
  });
}

TEST_P(Faults, PulseNamesWhomTheOperationWaitsFor) {
  std::promise<void> seen;
  auto signal = seen.get_future();
  world(2).run([&](Comm& comm) {
    if (comm.rank().value == 1) {
      signal.wait();
      return comm.barrier();
    }
    comm.on_pulse([&, first = true](GlobalRank waiting_for) mutable {
      if (waiting_for == GlobalRank{1} && std::exchange(first, false)) seen.set_value();
    });
    comm.barrier();
    comm.on_pulse(nullptr);
  });
}

std::string to_test_name(const testing::TestParamInfo<Transport>& test) {
  return to_name(test.param);
}

INSTANTIATE_TEST_SUITE_P(Transports, Faults,
                         testing::Values(Transport::SharedMemory, Transport::Tcp, Transport::Mixed),
                         to_test_name);

}  // namespace
}  // namespace lrun::comm
