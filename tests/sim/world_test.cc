// The simulated world itself, and the stories that every change must still tell.
#include "tests/sim/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "tests/sim/describe.h"

namespace lrun::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

World::Options two_to_three_nodes() {
  World::Options options;
  options.service.min_nodes = 2;
  options.service.max_nodes = 3;
  options.service.max_restarts = 2;
  options.service.last_call = seconds(1);
  options.agent.max_restarts = 2;
  options.agent.kill_grace = seconds(5);
  options.service.kill_grace = seconds(5);
  return options;
}

class WorldTest : public ::testing::Test {
 protected:
  void begin(const World::Options& options) { world_.emplace(options); }
  World& world() { return *world_; }

  bool runs(const std::string& node, int workers) {
    return world().agent_state(node) == AgentState::Running &&
           world().running_workers(node) == workers;
  }
  bool run_together(const std::vector<std::string>& nodes, int workers, Duration limit) {
    return world().advance_until(
        [&] {
          for (const std::string& node : nodes) {
            if (!runs(node, workers)) return false;
            if (world().assignment(node)->generation != world().assignment(nodes[0])->generation ||
                world().assignment(node)->group_world_size != static_cast<int>(nodes.size())) {
              return false;
            }
          }
          return true;
        },
        limit);
  }
  bool all_end(const std::vector<std::string>& nodes, Outcome outcome, Duration limit) {
    const bool ended = world().advance_until(
        [&] {
          for (const std::string& node : nodes) {
            if (world().has_agent(node)) return false;
          }
          return true;
        },
        limit);
    for (const std::string& node : nodes) {
      if (!world().ended(node) || world().ended(node)->outcome != outcome) return false;
    }
    return ended;
  }

  void TearDown() override {
    EXPECT_THAT(world().violations(), IsEmpty());
    if (!HasFailure()) return;
    for (const std::string& line : world().log()) std::printf("%s\n", line.c_str());
  }

 private:
  std::optional<World> world_;
};

TEST_F(WorldTest, TwoNodesTrainAndFinish) {
  World::Options options = two_to_three_nodes();
  options.habits.steps = 20;
  begin(options);
  world().join("a", 2);
  world().join("b", 2);
  EXPECT_TRUE(run_together({"a", "b"}, 2, seconds(3)));
  EXPECT_TRUE(all_end({"a", "b"}, Outcome::Succeeded, seconds(30)));
  EXPECT_EQ(world().generations().size(), 1U);
}

TEST_F(WorldTest, AWorkerThatDiesIsReplacedAndTheRestartIsCharged) {
  begin(two_to_three_nodes());
  world().join("a", 2);
  world().join("b", 2);
  ASSERT_TRUE(run_together({"a", "b"}, 2, seconds(3)));
  world().exit_worker("a", 1, {.by_signal = true, .code = SIGKILL});
  world().advance(milliseconds(100));
  EXPECT_TRUE(run_together({"a", "b"}, 2, seconds(2)));
  EXPECT_EQ(world().status()->restarts_spent, 1);
}

// B043: the loss of a node is free, and the others' victims are not charged either.
TEST_F(WorldTest, ALostNodeIsFree) {
  begin(two_to_three_nodes());
  for (const char* node : {"a", "b", "c"}) world().join(node, 2);
  ASSERT_TRUE(run_together({"a", "b", "c"}, 2, seconds(3)));
  world().kill_agent("c");
  EXPECT_TRUE(run_together({"a", "b"}, 2, seconds(3)));
  EXPECT_EQ(world().status()->restarts_spent, 0);
  world().join("c", 2);
  EXPECT_TRUE(run_together({"a", "b", "c"}, 2, seconds(3)));
  EXPECT_EQ(world().status()->restarts_spent, 0);
}

TEST_F(WorldTest, ARestartOfTheServiceChangesNothing) {
  begin(two_to_three_nodes());
  for (const char* node : {"a", "b"}) world().join(node, 2);
  ASSERT_TRUE(run_together({"a", "b"}, 2, seconds(3)));
  for (int turn = 0; turn < 3; ++turn) {
    world().kill_service();
    world().advance(seconds(4));
    world().start_service();
    world().advance(seconds(8));
    EXPECT_EQ(world().status()->phase, rendezvous::Phase::Active);
  }
  EXPECT_EQ(world().generations().size(), 1U);
}

TEST_F(WorldTest, LiveSurvivorsKeepTheirProcess) {
  World::Options options = two_to_three_nodes();
  options.habits.is_live = true;
  begin(options);
  for (const char* node : {"a", "b"}) world().join(node, 2);
  ASSERT_TRUE(run_together({"a", "b"}, 2, seconds(3)));
  world().advance(seconds(2));
  world().exit_worker("b", 0, {.by_signal = true, .code = SIGKILL});
  world().advance(milliseconds(50));
  EXPECT_TRUE(run_together({"a", "b"}, 2, seconds(1)));
  EXPECT_EQ(world().running_workers("a"), 2);
  for (const std::string& line : world().log()) {
    EXPECT_THAT(line, Not(HasSubstr("SIGTERM to"))) << "a live survivor was stopped";
    EXPECT_THAT(line, Not(HasSubstr("SIGKILL to"))) << "a live survivor was killed";
  }
}

}  // namespace
}  // namespace lrun::sim
