// The supervisor's table, rows of membership in the states after Running: Finished, Reforming,
// Stopping.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Membership = SupervisorTest;

// --- Finished ----------------------------------------------------------------------------------

// B053: those that are done wait for the others, however long these take.
TEST_F(Membership, FinishedWaitsForTheEndOfTheJob) {
  to_finished();
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Succeeded);
  EXPECT_EQ(only<Leave>().request.generation, (Generation{1, 1}));
  advance(seconds(3600));
  EXPECT_EQ(state(), AgentState::Finished);
  stop_job(Outcome::Succeeded);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Succeeded);
  EXPECT_EQ(state(), AgentState::Done);
}

TEST_F(Membership, FinishedToldToRejoinStartsAgain) {
  to_finished();
  rejoin(RejoinReason::WorkerFailed);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_EQ(only<Join>().request.last_seen, (Generation{1, 1}));
  assign(2);
  EXPECT_EQ(count<SpawnWorker>(), 2U);
}

TEST_F(Membership, FinishedDrainedLeaves) {
  to_finished();
  drain_node();
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(state(), AgentState::Done);
}

TEST_F(Membership, FinishedIgnoresARefusalOfAnOldJoin) {
  to_finished();
  step(JoinFailed{Refusal{RefuseReason::Closed, "late"}});
  EXPECT_EQ(state(), AgentState::Finished);
}

TEST_F(Membership, FinishedWithoutAServiceEndsWellAfterTheLimit) {
  to_finished();
  service_is_silent_ = true;
  advance(config_.unreachable_timeout - seconds(1));
  EXPECT_EQ(state(), AgentState::Finished);
  advance(seconds(1));
  EXPECT_EQ(only<Finish>().outcome, Outcome::Succeeded);
}

// --- Reforming ---------------------------------------------------------------------------------

TEST_F(Membership, ReformingAssignedGoesOnWithTheSurvivors) {
  to_reforming();
  assign(2, 3);
  EXPECT_EQ(count<SpawnWorker>(), 0U);
  EXPECT_THAT(told<channel::NewAssignment>(), ElementsAre(0, 1));
  const auto news = std::get<channel::NewAssignment>(all<TellWorker>()[1].message);
  EXPECT_EQ(news, (channel::NewAssignment{.generation = {1, 2},
                                          .global_rank = GlobalRank{5},
                                          .world_size = 6,
                                          .group_rank = GroupRank{2},
                                          .group_world_size = 3,
                                          .master_addr = "10.0.0.1",
                                          .master_port = 4242,
                                          .restart_count = 0}));
  EXPECT_EQ(state(), AgentState::Running) << "nobody had to be spawned";
}

TEST_F(Membership, ReformingIgnoresAnAssignmentItHasSeen) {
  to_reforming();
  assign(1);
  EXPECT_EQ(state(), AgentState::Reforming);
}

TEST_F(Membership, ReformingWithOtherSlotsStopsAndAsksAgain) {
  to_reforming();
  Assignment other = assignment(2);
  other.slots = 1;
  step(Assigned{other});
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Join>().request.last_seen, (Generation{1, 1})) << "the assignment was not taken";
}

TEST_F(Membership, ReformingRefusedForNowStaysAndJoinsAgain) {
  to_reforming();
  step(JoinFailed{Refusal{RefuseReason::StaleGeneration, "later"}});
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_EQ(count<Join>(), 0U);
  advance(milliseconds(200));
  EXPECT_EQ(count<Join>(), 1U);
}

// Found by the simulation (seed 158): the refusal was forgotten while the survivors were stopped.
TEST_F(Membership, ReformingRefusedForGoodStopsTheSurvivorsAndSaysWhy) {
  to_reforming();
  step(JoinFailed{Refusal{RefuseReason::JoinTimedOut, "1 of 2 nodes came"}});
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  const Finish end = only<Finish>();
  EXPECT_EQ(end.outcome, Outcome::Failed);
  ASSERT_TRUE(end.refusal);
  EXPECT_EQ(end.refusal->sentence, "1 of 2 nodes came");
}

TEST_F(Membership, ReformingToldToRejoinJoinsAgain) {
  to_reforming();
  rejoin(RejoinReason::Unknown);
  EXPECT_EQ(count<Join>(), 1U);
  EXPECT_EQ(state(), AgentState::Reforming);
}

TEST_F(Membership, ReformingDrainedLetsTheSurvivorsGo) {
  to_reforming();
  drain_node();
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_THAT(told<channel::Drain>(), ElementsAre(0, 1));
  exits(0, 0);
  exits(1, 0);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
}

TEST_F(Membership, ReformingToldToStopStops) {
  to_reforming();
  stop_job(Outcome::Failed);
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_THAT(told<channel::Stop>(), ElementsAre(0, 1));
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
}

// --- Stopping ----------------------------------------------------------------------------------

TEST_F(Membership, StoppingIgnoresAssignmentsSoThatTheyAreGivenAgain) {
  to_stopping();
  assign(2);
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Join>().request.last_seen, (Generation{1, 1}));
}

TEST_F(Membership, StoppingIgnoresRejoinAndRefusals) {
  to_stopping();
  rejoin();
  step(JoinFailed{Refusal{RefuseReason::Closed, "late"}});
  EXPECT_EQ(count<Join>(), 0U);
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Membership, StoppingDrainedLeavesAtItsEnd) {
  to_stopping();
  drain_node();
  EXPECT_THAT(signals(), IsEmpty()) << "they have been told already";
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
}

TEST_F(Membership, StoppingToldToStopEndsAtItsEnd) {
  to_stopping();
  stop_job(Outcome::Stopped);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Stopped);
  EXPECT_EQ(count<Join>(), 0U);
}

}  // namespace
}  // namespace lrun::agent
