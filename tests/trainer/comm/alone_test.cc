// A world of one rank: the same additions and the same checks, nobody to talk to.
#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "trainer/comm/comm.h"

namespace lrun::comm {
namespace {

std::unique_ptr<Comm> make_comm() {
  return Comm::connect({.rank = {0}, .world_size = 1, .generation = {}, .host = "", .node = ""},
                       nullptr);
}

TEST(Alone, AllReduceIsTheSumOfTheWholeTree) {
  const auto comm = make_comm();
  const std::vector<float> sum{1, 2, 3};
  std::vector<float> result(3);
  const SubtreeSum mine{{0, 4}, sum};
  comm->all_reduce({&mine, 1}, 4, result).wait();
  EXPECT_EQ(result, sum);
  EXPECT_EQ(comm->counters().sent_bytes, 0u);
  EXPECT_EQ(comm->counters().operations, 1u);
}

TEST(Alone, GathersAndBroadcastsReturnWhatWasGiven) {
  const auto comm = make_comm();
  std::vector<float> whole{1, 2, 3};
  const Range all{0, 3};
  comm->all_gather(whole, {&all, 1}).wait();
  EXPECT_EQ(whole, (std::vector<float>{1, 2, 3}));
  const std::vector<std::byte> bytes{std::byte{7}};
  EXPECT_EQ(comm->all_gather_bytes(bytes), (std::vector<std::vector<std::byte>>{bytes}));
  comm->barrier();
}

TEST(Alone, RefusesWhatDoesNotFit) {
  const auto comm = make_comm();
  std::vector<float> three(3);
  const SubtreeSum not_mine{{0, 3}, three};
  EXPECT_THROW(comm->all_reduce({&not_mine, 1}, 4, three), std::invalid_argument);
  const SubtreeSum too_short{{0, 4}, std::span(three).first(2)};
  EXPECT_THROW(comm->all_reduce({&too_short, 1}, 4, three), std::invalid_argument);
  const Range gap{1, 3};
  EXPECT_THROW(comm->all_gather(three, {&gap, 1}), std::invalid_argument);
  EXPECT_THROW(comm->broadcast({}, GlobalRank{1}), std::invalid_argument);
}

TEST(Alone, AbortEndsEveryLaterOperation) {
  const auto comm = make_comm();
  comm->abort("enough");
  // The abort reaches the communication thread at its own time, but then for ever.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::string sentence;
  while (sentence.empty() && std::chrono::steady_clock::now() < end) {
    try {
      comm->barrier();
    } catch (const Aborted& error) {
      sentence = error.what();
    }
  }
  EXPECT_EQ(sentence, "rank 0 aborted: enough");
  EXPECT_THROW(comm->barrier(), Aborted);
}

TEST(Alone, PulseComesWhileIdle) {
  std::promise<GlobalRank> pulsed;
  const auto comm = make_comm();
  comm->on_pulse([&, first = true](GlobalRank waiting_for) mutable {
    if (std::exchange(first, false)) pulsed.set_value(waiting_for);
  });
  auto future = pulsed.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(future.get(), GlobalRank{0});
  comm->on_pulse(nullptr);
}

TEST(Alone, RefusesARankOutsideTheWorld) {
  EXPECT_THROW(
      Comm::connect({.rank = {2}, .world_size = 2, .generation = {}, .host = "", .node = ""},
                    nullptr),
      std::invalid_argument);
}

}  // namespace
}  // namespace lrun::comm
