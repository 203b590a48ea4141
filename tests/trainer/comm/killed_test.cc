// Processes that are killed or stopped in the middle of an operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>

#include "tests/trainer/comm/process_world.h"

namespace lrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::StartsWith;

class Killed : public testing::TestWithParam<Transport> {};

std::string reduce_for_ever(Comm& comm, std::int64_t elements) {
  std::vector<float> values(static_cast<std::size_t>(elements), 1.0f);
  std::vector<SubtreeSum> sums;
  for (const Subtree& subtree : complete_subtrees(block_of(comm.rank(), comm.world_size(), 8), 8)) {
    sums.push_back({subtree, values});
  }
  std::vector<float> result(static_cast<std::size_t>(elements));
  return outcome_of([&] {
    for (;;) comm.all_reduce(sums, 8, result).wait();
  });
}

std::size_t shared_memory_files() {
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    ++files;
  }
  return files;
}

TEST_P(Killed, KillNineInAnOperationIsNamedByAllOthersQuickly) {
  const std::size_t files_before = shared_memory_files();
  auto fastest = milliseconds::max();
  for (int i = 0; i < 3; ++i) {
    ProcessWorld world({.size = 4, .transport = GetParam()},
                       [](Comm& comm) { return reduce_for_ever(comm, 1 << 20); });
    ASSERT_TRUE(world.wait_until_running());
    ::poll(nullptr, 0, 30 + 10 * i);
    const auto killed_at = steady_clock::now();
    world.send_signal(GlobalRank{2}, SIGKILL);
    for (const int rank : {0, 1, 3}) {
      const std::string text = world.outcome(GlobalRank{rank});
      EXPECT_THAT(text, StartsWith("PeerLost 2: operation ")) << "rank " << rank;
      EXPECT_THAT(text, HasSubstr("lost rank 2: its connection closed"));
    }
    fastest = std::min(fastest,
                       std::chrono::duration_cast<milliseconds>(steady_clock::now() - killed_at));
  }
  // By the news of its end, long before any deadline; the machine may be loaded.
  EXPECT_LE(fastest, std::chrono::seconds(5));
  EXPECT_EQ(shared_memory_files(), files_before);
}

TEST_P(Killed, KillNineWhileOthersWaitForIt) {
  ProcessWorld world({.size = 3, .transport = GetParam()}, [](Comm& comm) -> std::string {
    if (comm.rank().value == 1) ::pause();
    return outcome_of([&] { comm.barrier(); });
  });
  ASSERT_TRUE(world.wait_until_running());
  world.send_signal(GlobalRank{1}, SIGKILL);
  EXPECT_THAT(world.outcome(GlobalRank{0}), StartsWith("PeerLost 1: operation 0 (barrier)"));
  EXPECT_THAT(world.outcome(GlobalRank{2}), StartsWith("PeerLost 1: operation 0 (barrier)"));
}

TEST_P(Killed, AStoppedProcessIsNamedByTheDeadline) {
  const World ranks{.size = 4, .transport = GetParam(), .deadline = milliseconds(4000)};
  ProcessWorld world(ranks, [](Comm& comm) { return reduce_for_ever(comm, 1 << 16); });
  ASSERT_TRUE(world.wait_until_running());
  ::poll(nullptr, 0, 30);
  world.send_signal(GlobalRank{1}, SIGSTOP);
  for (const int rank : {0, 2, 3}) {
    const std::string text = world.outcome(GlobalRank{rank});
    EXPECT_THAT(text, StartsWith("DeadlineExceeded: operation ")) << "rank " << rank;
    EXPECT_THAT(text, testing::EndsWith("waits for rank 1"));
  }
}

std::string to_test_name(const testing::TestParamInfo<Transport>& test) {
  return to_name(test.param);
}

INSTANTIATE_TEST_SUITE_P(Transports, Killed,
                         testing::Values(Transport::SharedMemory, Transport::Tcp, Transport::Mixed),
                         to_test_name);

}  // namespace
}  // namespace lrun::comm
