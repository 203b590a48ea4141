// Failures of workers: charged once, never for a lost node, and the end of the budget.
#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

class Failure : public StateFixture {};

// B031: all workers restart under the same agents.
TEST_F(Failure, IsChargedOnceAlthoughTwoNodesReportIt) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join_failed("n1");
  join_failed("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 1);
  EXPECT_EQ(agent("n1").assignment->restarts_spent, 1);
  EXPECT_EQ(agent("n2").assignment->reason, GenerationReason::WorkerFailed);
  ASSERT_EQ(seen<RestartCharged>().size(), 1u);
  EXPECT_EQ(seen<RestartCharged>()[0].cause, exit_cause("n1")) << "the first one is the cause";
}

TEST_F(Failure, BeyondTheBudgetClosesTheJobWithItsCause) {
  Config config = config_of(2, 2);
  config.max_restarts = 1;
  start(config);
  form({"n1", "n2"});
  join_failed("n1");
  join("n2");
  hold_watch("n2");
  const Ticket last = join_failed("n1", exit_cause("n1", 7));
  EXPECT_EQ(phase(), Phase::Closed);
  EXPECT_EQ(status().outcome, Outcome::Failed);
  EXPECT_EQ(status().cause, exit_cause("n1", 7));
  const Directive expected = StopJob{Outcome::Failed, exit_cause("n1", 7)};
  EXPECT_EQ(watched(held_watch_["n2"]), expected);
  EXPECT_EQ(refused_join(last), RefuseReason::Closed);
  EXPECT_EQ(status().restarts_spent, 1);
}

// B091: the first failure stops all, nobody waits for the reporter's own workers to end.
TEST_F(Failure, EndsTheGroupWithTheFirstHeartbeatThatNamesIt) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  HeartbeatRequest request = heartbeat_request("n1");
  request.state = AgentState::Stopping;
  request.failure = exit_cause("n1");
  heartbeat(request);
  EXPECT_TRUE(std::holds_alternative<Rejoin>(watched(held_watch_["n2"])));
  EXPECT_EQ(status().restarts_spent, 1);
  join("n2");
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 1);
}

// B043 (a): workers that fail because a peer's node was lost cost nothing.
TEST_F(Failure, OfAVictimIsNotChargedWhenItsPeersNodeIsGone) {
  Config config = config_of(1, 2);
  config.max_restarts = 1;
  start(config);
  for (int loss = 0; loss < 3; ++loss) {
    join("n2");
    join("n1");
    hold_watch("n1");
    hold_watch("n2");
    ASSERT_EQ(phase(), Phase::Active);
    lose_connection("n2");
    join_failed("n1");
    EXPECT_NE(phase(), Phase::Active) << "undecided within the grace";
    advance(config_.gone_grace);
    EXPECT_EQ(phase(), Phase::Active);
    EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::NodeLost);
    renew_agent("n2");
  }
  EXPECT_EQ(status().restarts_spent, 0);
}

TEST_F(Failure, IsChargedWhenTheDoubtfulNodeComesBack) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  lose_connection("n2");
  join_failed("n1");
  EXPECT_EQ(status().restarts_spent, 0);
  hold_watch("n2");
  EXPECT_EQ(status().restarts_spent, 1);
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Failure, WaitsForTheLeaseOfASilentNode) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  heartbeat("n2");
  live(seconds(3), {"n1"});
  join_failed("n1");
  EXPECT_EQ(status().restarts_spent, 0);
  live(seconds(2), {"n1"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 0);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::NodeLost);
}

// Seen in a training job: the node of the victims was 2 ms quicker than that of the killed worker,
// and the kill was not charged.
TEST_F(Failure, IsChargedThoughTheVictimsNodeJoinsFirst) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join("n2");
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 1);
  EXPECT_EQ(agent("n2").assignment->reason, GenerationReason::WorkerFailed);
  EXPECT_EQ(status().cause, exit_cause("n1"));
}

TEST_F(Failure, AfterTheGroupHasEndedIsAConsequence) {
  start(config_of(1, 3));
  form({"n1", "n2"});
  join("n3");
  join_failed("n1");
  join_failed("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 0);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::NodeJoined);
}

TEST_F(Failure, OfAFencedAgentIsFree) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  FirstCause cause = exit_cause("n1");
  cause.kind = FailureKind::LeaseLost;
  join_failed("n1", cause);
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 0);
}

TEST_F(Failure, ByStallIsNamedSo) {
  start(config_of(1, 1));
  form({"n1"});
  FirstCause cause = exit_cause("n1");
  cause.kind = FailureKind::Stalled;
  join_failed("n1", cause);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::Stalled);
  EXPECT_EQ(status().restarts_by_kind, (std::map<FailureKind, int>{{FailureKind::Stalled, 1}}));
}

TEST_F(Failure, WithoutProgressIsFollowedByAPause) {
  start(config_of(1, 1));
  form({"n1"});
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::Active) << "the first time at once";
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(1), {"n1"});
  EXPECT_EQ(phase(), Phase::Active);
  HeartbeatRequest request = heartbeat_request("n1");
  request.progress.step = 10;
  heartbeat(request);
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::Active) << "there was progress";
}

TEST_F(Failure, RestoresWhatJoinsSayWasSpent) {
  Config config = config_of(1, 1);
  config.may_have_predecessor = true;
  start(config);
  JoinRequest request = join_request("n1");
  request.last_seen = Generation{3, 4};
  request.restarts_spent = 2;
  request.failure = exit_cause("n1");
  join(request);
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(status().restarts_spent, 3);
}

TEST_F(Failure, HasASentenceOfBoundedLength) {
  start(config_of(1, 1));
  form({"n1"});
  FirstCause cause = exit_cause("n1");
  cause.sentence = std::string(100'000, 'x');
  join_failed("n1", cause);
  EXPECT_EQ(status().cause->sentence.size(), kSentenceBytesMax);
}

// B021: nodes that notice late still meet in the same group, every time.
TEST_F(Failure, BringsEverybodyIntoTheSameNextGroup) {
  Config config = config_of(3, 3);
  config.last_call = seconds(1);
  config.max_restarts = 20;
  start(config);
  form({"n1", "n2", "n3"});
  for (int round = 2; round <= 20; ++round) {
    HeartbeatRequest progress = heartbeat_request("n1");
    progress.progress.step = round;
    heartbeat(progress);
    join_failed("n1");
    live(seconds(5), {"n1", "n2", "n3"});
    join("n2");
    live(seconds(5), {"n1", "n2", "n3"});
    join("n3");
    ASSERT_EQ(phase(), Phase::Active);
    ASSERT_EQ(agent("n1").assignment->generation, agent("n3").assignment->generation);
    ASSERT_EQ(agent("n1").assignment->generation.number, static_cast<std::uint64_t>(round));
  }
}

}  // namespace
}  // namespace lrun::rendezvous
