// The supervisor's table, rows of processes: spawned, exited, failed; verdicts and first causes.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Failure = SupervisorTest;

// --- WorkerSpawned, SpawnFailed ----------------------------------------------------------------

TEST_F(Failure, TheLastSpawnedWorkerMakesItRunning) {
  to_starting();
  spawned(1);
  EXPECT_EQ(state(), AgentState::Starting);
  spawned(0);
  EXPECT_EQ(state(), AgentState::Running);
  EXPECT_EQ(supervisor().workers()[1].pid, 101);
  EXPECT_TRUE(supervisor().workers()[1].is_alive);
}

TEST_F(Failure, AFailedSpawnFailsTheGroup) {
  to_starting(1);
  spawned(0);
  step(SpawnFailed{LocalRank{1}, "no such file"});
  EXPECT_EQ(state(), AgentState::Stopping);
  const FirstCause cause = only<FailureSeen>().cause;
  EXPECT_EQ(cause.kind, FailureKind::SpawnFailed);
  EXPECT_THAT(cause.sentence, HasSubstr("no such file"));
  dies(0, SIGTERM);
  EXPECT_EQ(only<Join>().request.failure->kind, FailureKind::SpawnFailed);
}

TEST_F(Failure, WhatHappensToUnknownWorkersIsIgnored) {
  to_running();
  EXPECT_THAT(step(WorkerSpawned{LocalRank{9}, 1}), IsEmpty());
  EXPECT_THAT(step(SpawnFailed{LocalRank{-1}, ""}), IsEmpty());
  EXPECT_THAT(exits(7, 1), IsEmpty());
  EXPECT_THAT(say(7, channel::Hello{.live = true}), IsEmpty());
  EXPECT_THAT(step(WorkerGarbled{LocalRank{7}, ""}), IsEmpty());
  EXPECT_THAT(step(LookupAnswered{LocalRank{7}, "k", "v", {}}), IsEmpty());
}

// --- WorkerExited, zero ------------------------------------------------------------------------

TEST_F(Failure, AWorkerThatEndsWellEarlyIsFineWhileOthersRun) {
  to_running();
  exits(0, 0);
  EXPECT_EQ(state(), AgentState::Running);
  advance(seconds(100));
  EXPECT_EQ(state(), AgentState::Running);
  exits(1, 0);
  EXPECT_EQ(state(), AgentState::Finished);
}

TEST_F(Failure, WorkersThatEndWellBeforeTheLastHasStartedAreCounted) {
  to_starting();
  spawned(0);
  exits(0, 0);
  EXPECT_EQ(state(), AgentState::Starting);
  spawned(1);
  EXPECT_EQ(state(), AgentState::Running);
  exits(1, 0);
  EXPECT_EQ(state(), AgentState::Finished);
}

TEST_F(Failure, ASurvivorThatEndsWellWhileReformingIsReplaced) {
  to_reforming();
  exits(0, 0);
  EXPECT_EQ(state(), AgentState::Reforming);
  assign(2);
  EXPECT_EQ(only<SpawnWorker>().local_rank, LocalRank{0});
  EXPECT_THAT(told<channel::NewAssignment>(), ElementsAre(1));
}

TEST_F(Failure, WhenTheLastSurvivorEndsWellTheJoinIsRepeatedWithoutIt) {
  to_reforming();
  exits(0, 0);
  exits(1, 0);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_EQ(count<Join>(), 1U);
}

// --- WorkerExited, non-zero --------------------------------------------------------------------

TEST_F(Failure, ALoneNodesFailureIsReportedAndChargedAtOnce) {
  to_running(1);
  exits(1, 42);
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_TRUE(only<FailureSeen>().is_first);
  EXPECT_EQ(only<RestartStarted>().kind, FailureKind::ExitCode);
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGTERM)));
  EXPECT_EQ(only<SendHeartbeat>().request.failure->code, 42) << "others need not wait for the stop";
  dies(0, SIGTERM);
  EXPECT_EQ(state(), AgentState::Joining);
  const JoinRequest request = only<Join>().request;
  ASSERT_TRUE(request.failure);
  EXPECT_EQ(request.failure->code, 42);
  EXPECT_EQ(request.failure->global_rank, GlobalRank{1});
  EXPECT_EQ(request.last_seen, (Generation{1, 1}));
  assign(2, 1, 1);
  EXPECT_EQ(all<SpawnWorker>()[0].environment.restart_count, 1);
  dies(0, SIGTERM);
}

// B062: the others end with 0 or 143 because they were told to; the first one is the cause.
TEST_F(Failure, WorkersThatWereStoppedAreNeverTheCause) {
  config_.max_restarts = 0;
  to_running(1);
  exits(1, 42);
  exits(0, 143);
  EXPECT_EQ(only<Finish>().cause->code, 42);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
}

// B051: SIGINT to one worker alone.
TEST_F(Failure, AnInterruptedWorkerIsAFailure) {
  config_.max_restarts = 0;
  to_running(1);
  dies(0, SIGINT);
  dies(1, SIGTERM);
  EXPECT_THAT(only<Finish>().cause->sentence, HasSubstr("SIGINT"));
}

TEST_F(Failure, TheFirstFailureInStartingStopsTheRest) {
  to_starting(1);
  spawned(0);
  exits(0, 1);
  EXPECT_EQ(state(), AgentState::Stopping);
  spawned(1);
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGTERM)));
  dies(1, SIGTERM);
  EXPECT_EQ(state(), AgentState::Joining);
}

// B054: nobody waits for this node's slow workers to hear that the job is over.
TEST_F(Failure, WithoutBudgetTheJobIsEndedAtOnceAndAgainAtTheEnd) {
  config_.max_restarts = 0;
  to_running(1);
  dies(0, SIGSEGV);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Failed);
  EXPECT_EQ(only<Leave>().request.cause->code, SIGSEGV);
  EXPECT_EQ(state(), AgentState::Stopping);
  advance(seconds(1));
  dies(1, SIGTERM);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Failed) << "the first may have been lost";
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
}

TEST_F(Failure, TheBudgetOfTheAssignmentCounts) {
  to_running(1);
  exits(0, 1);
  dies(1, SIGTERM);
  assign(2, 1, 3);
  spawned(0);
  spawned(1);
  exits(0, 2);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Failed);
}

TEST_F(Failure, ACrashLoopEndsWithNoProgress) {
  config_.max_restarts = 100;
  config_.crash_loop_limit = 3;
  start();
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    assign(turn, 1, static_cast<int>(turn) - 1);
    spawned(0);
    spawned(1);
    exits(0, 1);
    dies(1, SIGTERM);
  }
  EXPECT_EQ(state(), AgentState::Done);
  EXPECT_EQ(only<Finish>().outcome, Outcome::NoProgress);
  EXPECT_EQ(only<Finish>().cause->code, 1);
}

TEST_F(Failure, TheEndOfTheKeeperIsTheFailureOfAll) {
  to_running(1);
  step(KeeperLost{});
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_THAT(only<Join>().request.failure->sentence, HasSubstr("process that holds the workers"));
}

TEST_F(Failure, TheEndOfTheKeeperInOtherStates) {
  to_stopping();
  step(KeeperLost{});
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_FALSE(only<Join>().request.failure) << "they were being stopped anyway";
  step(KeeperLost{});
  EXPECT_EQ(state(), AgentState::Joining);
}

TEST_F(Failure, TheEndOfTheKeeperWhileReformingLeavesNoSurvivor) {
  to_reforming();
  step(KeeperLost{});
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_TRUE(only<Join>().request.failure);
}

// --- several nodes: whose failure is it? -------------------------------------------------------

// B043: a plain worker that lost its peer's node ends too; the loss of the node is free.
TEST_F(Failure, AVictimOfALostNodeIsFree) {
  config_.max_restarts = 0;
  to_running(2);
  exits(0, 1);
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_EQ(count<Leave>(), 0U) << "not yet judged";
  dies(1, SIGTERM);
  EXPECT_EQ(state(), AgentState::Stopping);
  advance(milliseconds(50));
  rejoin(RejoinReason::NodeLost);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_FALSE(only<Join>().request.failure);
  EXPECT_EQ(only<ReformStarted>().cause, StopCause::MembershipChanged);
  EXPECT_EQ(count<RestartStarted>(), 0U);
}

TEST_F(Failure, WithoutBadNewsTheFailureIsThisNodes) {
  to_running(2);
  exits(0, 1);
  dies(1, SIGTERM);
  advance(milliseconds(99));
  EXPECT_EQ(state(), AgentState::Stopping);
  advance(milliseconds(1));
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_EQ(only<Join>().request.failure->code, 1);
}

TEST_F(Failure, BeforeAFailureEndsTheJobTheServiceMaySayThatANodeWasLost) {
  config_.max_restarts = 0;
  to_running(2);
  exits(0, 1);
  dies(1, SIGTERM);
  advance(milliseconds(100));
  EXPECT_EQ(only<SendHeartbeat>().request.failure->code, 1);
  EXPECT_EQ(state(), AgentState::Stopping);
  advance(milliseconds(499));
  EXPECT_EQ(state(), AgentState::Stopping);
  advance(milliseconds(1));
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
  EXPECT_GE(count<Leave>(), 1U);
}

TEST_F(Failure, TheServiceMayDecideAboutAnAnnouncedFailureFirst) {
  config_.max_restarts = 0;
  to_running(2);
  exits(0, 1);
  dies(1, SIGTERM);
  advance(milliseconds(100));
  rejoin(RejoinReason::NodeLost);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_FALSE(only<Join>().request.failure);
}

TEST_F(Failure, ALiveWorkersExitIsNobodysElse) {
  to_running_live(2);
  dies(0, SIGKILL);
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_THAT(told<channel::Abort>(), ElementsAre(1));
  EXPECT_EQ(only<Join>().request.failure->code, SIGKILL) << "at once: survivors wait";
  EXPECT_EQ(only<RestartStarted>().kind, FailureKind::Signal);
}

// --- live groups -------------------------------------------------------------------------------

TEST_F(Failure, OnlyTheFailedLiveWorkerIsReplaced) {
  to_running_live(2);
  dies(0, SIGKILL);
  assign(2, 2, 1);
  EXPECT_EQ(state(), AgentState::Starting);
  EXPECT_EQ(only<SpawnWorker>().local_rank, LocalRank{0});
  EXPECT_THAT(told<channel::NewAssignment>(), ElementsAre(1));
  spawned(0);
  EXPECT_EQ(state(), AgentState::Running);
}

TEST_F(Failure, ASecondFailureWhileStartingIsTheSameEventAgain) {
  to_running_live(2);
  dies(0, SIGKILL);
  assign(2, 2, 1);
  say(1, channel::Aborted{{1, 1}});
  step(SpawnFailed{LocalRank{0}, "no memory"});
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_EQ(only<Join>().request.failure->kind, FailureKind::SpawnFailed);
  EXPECT_EQ(only<Join>().request.last_seen, (Generation{1, 2}));
}

TEST_F(Failure, WithoutASurvivorALiveGroupStartsAnew) {
  to_running_live(2);
  dies(0, SIGKILL);
  dies(1, SIGKILL);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_EQ(only<Join>().request.failure->local_rank, LocalRank{0}) << "the first cause stays";
  EXPECT_FALSE(only<FailureSeen>().is_first);
}

TEST_F(Failure, ALiveGroupWithoutBudgetIsStopped) {
  config_.max_restarts = 0;
  to_running_live(1);
  dies(0, SIGKILL);
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Failed);
  EXPECT_THAT(told<channel::Stop>(), ElementsAre(1));
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGTERM)));
}

TEST_F(Failure, AReportedFailureIsChargedAndItsWorkerKept) {
  to_running_live(2);
  say(0, channel::Failed{.reason = "loss is not finite", .peer = {}});
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_THAT(told<channel::Abort>(), ElementsAre(0, 1));
  EXPECT_EQ(only<Join>().request.failure->kind, FailureKind::Reported);
}

TEST_F(Failure, APlainWorkersReportStopsTheGroup) {
  to_running(1);
  say(0, channel::Failed{.reason = "bad input", .peer = {}});
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_EQ(only<FailureSeen>().cause.kind, FailureKind::Reported);
}

TEST_F(Failure, ReportsInOtherStatesAreNoted) {
  to_stopping();
  EXPECT_THAT(say(0, channel::Failed{.reason = "x", .peer = {}}), IsEmpty());
}

}  // namespace
}  // namespace lrun::agent
