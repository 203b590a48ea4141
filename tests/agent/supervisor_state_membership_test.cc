// The supervisor's table, rows of membership: Started, Assigned, JoinFailed, directives, in
// the states up to Running, and in Done.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Membership = SupervisorTest;

// --- Joining -----------------------------------------------------------------------------------

TEST_F(Membership, StartedJoinsWithWhatTheNodeBrings) {
  start();
  EXPECT_EQ(state(), AgentState::Joining);
  const JoinRequest request = only<Join>().request;
  EXPECT_EQ(request.facts, config_.facts);
  EXPECT_EQ(request.run_id, "job");
  EXPECT_TRUE(is_none(request.last_seen));
  EXPECT_FALSE(request.failure);
}

TEST_F(Membership, NothingIsDueBeforeTheStart) {
  EXPECT_FALSE(supervisor().next_deadline());
  start();
  EXPECT_TRUE(supervisor().next_deadline());
  step(Started{});
  EXPECT_EQ(count<Join>(), 0U);
}

TEST_F(Membership, JoiningAssignedSpawnsEverySlotWithItsWholeEnvironment) {
  config_.max_restarts = 5;
  start();
  assign(1, 2, 3);
  EXPECT_EQ(state(), AgentState::Starting);
  const auto spawns = all<SpawnWorker>();
  ASSERT_EQ(spawns.size(), 2U);
  const WorkerEnv expected{.local_rank = LocalRank{1},
                           .local_world_size = 2,
                           .global_rank = GlobalRank{3},
                           .world_size = 4,
                           .group_rank = GroupRank{1},
                           .group_world_size = 2,
                           .role_name = "trainer",
                           .role_rank = 3,
                           .role_world_size = 4,
                           .master_addr = "10.0.0.1",
                           .master_port = 4242,
                           .run_id = "job",
                           .generation = {1, 1},
                           .restart_count = 3,
                           .max_restarts = 5,
                           .error_file = "/logs/attempt_3/1/error.json",
                           .channel_fd = -1};
  EXPECT_EQ(spawns[1].local_rank, LocalRank{1});
  EXPECT_EQ(spawns[1].environment, expected);
  EXPECT_EQ(spawns[0].environment.global_rank, GlobalRank{2});
}

TEST_F(Membership, WithoutALogFolderThereIsNoErrorFile) {
  config_.log_folder = "";
  to_starting();
  EXPECT_EQ(all<SpawnWorker>()[0].environment.error_file, "");
}

TEST_F(Membership, JoiningIgnoresAnAssignmentItHasSeen) {
  to_stopping();
  exits(0, 0);
  exits(1, 0);
  ASSERT_EQ(state(), AgentState::Joining);
  assign(1);
  EXPECT_EQ(state(), AgentState::Joining);
  assign(2);
  EXPECT_EQ(state(), AgentState::Starting);
}

TEST_F(Membership, JoiningRefusedForGoodEndsWithTheRefusal) {
  start();
  step(JoinFailed{Refusal{RefuseReason::WrongRun, "another run is served here"}});
  EXPECT_EQ(state(), AgentState::Done);
  const Finish end = only<Finish>();
  EXPECT_EQ(end.outcome, Outcome::Failed);
  ASSERT_TRUE(end.refusal);
  EXPECT_EQ(end.refusal->reason, RefuseReason::WrongRun);
  EXPECT_FALSE(supervisor().next_deadline());
}

TEST_F(Membership, JoiningRefusedForNowBacksOffAndJoinsAgain) {
  to_backoff();
  EXPECT_EQ(count<Join>(), 0U);
  advance(milliseconds(200));
  EXPECT_EQ(count<Join>(), 1U);
  EXPECT_EQ(state(), AgentState::Joining);
}

TEST_F(Membership, JoiningToldToRejoinJoinsAgain) {
  start();
  rejoin(RejoinReason::Unknown);
  EXPECT_EQ(count<Join>(), 1U);
}

TEST_F(Membership, JoiningDrainedLeavesAsIfStoppedBySigterm) {
  start();
  drain_node();
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
  EXPECT_EQ(state(), AgentState::Done);
}

TEST_F(Membership, JoiningToldToStopEndsWithTheJobsOutcome) {
  start();
  FirstCause cause;
  cause.sentence = "worker 0 failed";
  step(DirectiveReceived{StopJob{Outcome::Failed, cause}, {}});
  const Finish end = only<Finish>();
  EXPECT_EQ(end.outcome, Outcome::Failed);
  EXPECT_EQ(end.cause, cause);
  EXPECT_FALSE(end.refusal);
}

// --- Backoff -----------------------------------------------------------------------------------

TEST_F(Membership, BackoffIgnoresAssignmentsRefusalsAndRejoin) {
  to_backoff();
  assign(1);
  EXPECT_EQ(state(), AgentState::Backoff);
  step(JoinFailed{Refusal{RefuseReason::WrongRun, "late"}});
  EXPECT_EQ(state(), AgentState::Backoff);
  rejoin();
  EXPECT_EQ(count<Join>(), 0U);
  EXPECT_EQ(state(), AgentState::Backoff);
}

TEST_F(Membership, BackoffDrainedLeaves) {
  to_backoff();
  drain_node();
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(state(), AgentState::Done);
}

TEST_F(Membership, BackoffToldToStopEnds) {
  to_backoff();
  stop_job(Outcome::Stopped);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Stopped);
}

// --- Starting and Running ----------------------------------------------------------------------

TEST_F(Membership, StartingRunningAndFinishedIgnoreAssignments) {
  to_starting();
  assign(2);
  EXPECT_EQ(count<SpawnWorker>(), 0U);
  spawned(0);
  spawned(1);
  assign(2);
  EXPECT_EQ(state(), AgentState::Running);
  exits(0, 0);
  exits(1, 0);
  assign(2);
  EXPECT_EQ(state(), AgentState::Finished);
}

TEST_F(Membership, LateRefusalsOfAJoinChangeNothing) {
  to_starting();
  step(JoinFailed{Refusal{RefuseReason::Closed, "late"}});
  EXPECT_EQ(state(), AgentState::Starting);
  spawned(0);
  spawned(1);
  step(JoinFailed{Refusal{RefuseReason::Closed, "late"}});
  EXPECT_EQ(state(), AgentState::Running);
}

// B031, B032: the agent stays, only its workers are replaced; nothing is charged.
TEST_F(Membership, RunningToldToRejoinReplacesPlainWorkersUnderTheSameAgent) {
  to_running();
  rejoin(RejoinReason::NodeJoined);
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_EQ(only<ReformStarted>().cause, StopCause::MembershipChanged);
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  dies(0, SIGTERM);
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(1, SIGTERM);
  EXPECT_EQ(state(), AgentState::Joining);
  const JoinRequest request = only<Join>().request;
  EXPECT_EQ(request.last_seen, (Generation{1, 1}));
  EXPECT_FALSE(request.failure);
  EXPECT_EQ(count<RestartStarted>(), 0U);
  assign(2);
  EXPECT_EQ(count<SpawnWorker>(), 2U);
}

TEST_F(Membership, StartingToldToRejoinStopsWhatHasStartedAndWhatIsBeingStarted) {
  to_starting();
  spawned(0);
  rejoin();
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGTERM)));
  spawned(1);
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGTERM)));
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(state(), AgentState::Joining);
}

TEST_F(Membership, RunningLiveToldToRejoinAbortsAndJoinsAtOnce) {
  to_running_live();
  rejoin(RejoinReason::NodeJoined);
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_THAT(told<channel::Abort>(), ElementsAre(0, 1));
  EXPECT_THAT(signals(), IsEmpty());
  EXPECT_EQ(only<Join>().request.last_seen, (Generation{1, 1}));
}

TEST_F(Membership, StartingLiveToldToRejoinKeepsTheLiveAndReplacesTheOthers) {
  to_starting();
  spawned(0);
  hello(0);
  rejoin();
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_THAT(told<channel::Abort>(), ElementsAre(0));
  spawned(1);
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGTERM)));
}

TEST_F(Membership, ARejoinThatCrossedTheAssignmentIsOldNews) {
  to_running();
  // The answer to a heartbeat which named no running generation.
  step(DirectiveReceived{Rejoin{RejoinReason::Unknown, {}}, Generation{}});
  EXPECT_EQ(state(), AgentState::Running);
  // A Watch that speaks of a generation before this one.
  step(DirectiveReceived{Rejoin{RejoinReason::NodeLost, Generation{0, 9}}, {}});
  EXPECT_EQ(state(), AgentState::Running);
  step(DirectiveReceived{Rejoin{RejoinReason::NodeLost, Generation{1, 1}}, Generation{1, 1}});
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Membership, StartingAndRunningDrainedStopAndLeave) {
  for (const bool is_running : {false, true}) {
    Supervisor fresh(config_, now_);
    std::swap(supervisor(), fresh);
    to_starting();
    spawned(0);
    if (is_running) spawned(1);
    drain_node();
    EXPECT_EQ(state(), AgentState::Stopping);
    EXPECT_EQ(count<Leave>(), 0U) << "it leaves when its workers have ended";
    if (!is_running) spawned(1);
    dies(0, SIGTERM);
    dies(1, SIGTERM);
    EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
    EXPECT_EQ(only<Finish>().outcome, Outcome::Stopped);
    EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
  }
}

TEST_F(Membership, StartingAndRunningToldToStopStop) {
  for (const bool is_running : {false, true}) {
    Supervisor fresh(config_, now_);
    std::swap(supervisor(), fresh);
    to_starting();
    spawned(0);
    if (is_running) spawned(1);
    stop_job(Outcome::Failed);
    EXPECT_EQ(state(), AgentState::Stopping);
    if (!is_running) step(SpawnFailed{LocalRank{1}, "no memory"});
    dies(0, SIGTERM);
    if (is_running) dies(1, SIGTERM);
    EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
    EXPECT_EQ(count<Leave>(), 0U);
  }
}

// --- Done --------------------------------------------------------------------------------------

TEST_F(Membership, DoneIgnoresEverything) {
  start();
  stop_job(Outcome::Stopped);
  ASSERT_EQ(state(), AgentState::Done);
  const std::vector<Event> events{Started{},
                                  Assigned{assignment(2)},
                                  JoinFailed{},
                                  WorkerSpawned{},
                                  SpawnFailed{},
                                  WorkerExited{},
                                  WorkerSaid{},
                                  WorkerGarbled{},
                                  DirectiveReceived{},
                                  HeartbeatAnswered{},
                                  ServiceUnreachable{},
                                  LookupAnswered{},
                                  SignalReceived{SIGTERM},
                                  KeeperLost{},
                                  TimePassed{}};
  for (const Event& event : events) EXPECT_THAT(step(event), IsEmpty());
  EXPECT_FALSE(supervisor().next_deadline());
}

}  // namespace
}  // namespace lrun::agent
