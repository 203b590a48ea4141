// The row Recovering of the table of phase × event: the service has just started, a job may run.
#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

class Recovering : public StateFixture {
 protected:
  // A job runs under a first service, which dies; its next life knows nothing.
  void restart_over(const std::vector<std::string>& nodes, int min_nodes, int max_nodes) {
    Config config = config_of(min_nodes, max_nodes);
    start(config, 5);
    form(nodes);
    restart();
  }
  void restart() {
    Config config = config_;
    config.may_have_predecessor = true;
    start(config, ++term_);
    held_watch_.clear();
  }
  std::uint64_t term_ = 5;
};

TEST_F(Recovering, RebuildsTheSameGenerationFromHeartbeats) {
  restart_over({"n1", "n2"}, 1, 2);
  EXPECT_EQ(phase(), Phase::Recovering);
  EXPECT_EQ(directive("n1"), Directive{Continue{}});
  EXPECT_EQ(phase(), Phase::Recovering);
  EXPECT_EQ(directive("n2"), Directive{Continue{}});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(generation(), (Generation{5, 1}));
  EXPECT_EQ(status().world_size, 2);
  EXPECT_EQ(node_status("n2")->assignment, agent("n2").assignment);
  live(seconds(60), {"n1", "n2"});
  EXPECT_EQ(generation(), (Generation{5, 1}));
}

TEST_F(Recovering, HasNewerGenerationsFromThenOn) {
  restart_over({"n1"}, 1, 1);
  heartbeat("n1");
  join_failed("n1");
  EXPECT_EQ(generation(), (Generation{6, 1}));
}

TEST_F(Recovering, RaisesItsTermAboveTheReportedOne) {
  restart_over({"n1"}, 1, 1);
  agent("n1").assignment->generation = agent("n1").last_seen = Generation{40, 2};
  heartbeat("n1");
  EXPECT_EQ(generation(), (Generation{40, 2}));
  join_failed("n1");
  EXPECT_GT(generation(), (Generation{40, 2}));
}

TEST_F(Recovering, HoldsWatchesAndAnswersThemLater) {
  restart_over({"n1", "n2"}, 1, 2);
  const Ticket ticket = watch("n1");
  heartbeat("n1");
  heartbeat("n2");
  EXPECT_FALSE(watch_reply(ticket));
  join_failed("n2");
  EXPECT_TRUE(std::holds_alternative<Rejoin>(watched(ticket)));
}

TEST_F(Recovering, FormsAnewWhenSomebodyIsMissing) {
  restart_over({"n1", "n2"}, 1, 2);
  live(config_.lease, {"n1"});
  EXPECT_EQ(phase(), Phase::Forming);
  const Directive expected = Rejoin{RejoinReason::NodeLost, Generation{5, 1}};
  EXPECT_EQ(directive("n1"), expected);
  join("n1");
  EXPECT_EQ(phase(), Phase::Active) << "the only survivor waits";
  EXPECT_EQ(generation(), (Generation{6, 1}));
}

TEST_F(Recovering, FormsWhenNothingRan) {
  Config config = config_of(1, 1);
  config.may_have_predecessor = true;
  start(config);
  const Ticket ticket = join("n1");
  EXPECT_FALSE(join_reply(ticket));
  EXPECT_EQ(phase(), Phase::Recovering);
  live(config.lease, {"n1"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::Start);
}

TEST_F(Recovering, EndsForAJoinThatRanTheNewestGeneration) {
  restart_over({"n1", "n2"}, 2, 2);
  heartbeat("n1");
  join_failed("n2");
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_EQ(status().restarts_spent, 1);
  join("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(generation(), (Generation{6, 1}));
}

// The service died while the group was forming anew: nobody runs it, and nobody can say who was in
// it.
TEST_F(Recovering, WaitsALeaseForSurvivorsItHasNotHeardYet) {
  restart_over({"n1", "n2"}, 1, 3);
  join("n1");
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(1), {"n1"});
  join("n2");
  EXPECT_EQ(phase(), Phase::LastCall) << "a third one may come";
  live(config_.lease - seconds(1), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active) << "and no last call of 30 s";
  EXPECT_EQ(status().world_size, 2);
}

TEST_F(Recovering, HoldsAJoinThatHasSeenLess) {
  restart_over({"n1", "n2"}, 2, 2);
  const Ticket newcomer = join("n3");
  heartbeat("n1");
  EXPECT_EQ(phase(), Phase::Recovering);
  EXPECT_FALSE(join_reply(newcomer));
  heartbeat("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(node_status("n3")->role, Role::Spare);
}

TEST_F(Recovering, FollowsTheNewestOfTwoReports) {
  restart_over({"n1", "n2"}, 1, 2);
  Assignment newer = *agent("n2").assignment;
  newer.generation = Generation{5, 2};
  newer.group_rank = GroupRank{0};
  newer.group_world_size = 1;
  newer.first_global_rank = GlobalRank{0};
  newer.world_size = 1;
  agent("n2").assignment = newer;
  heartbeat("n1");
  heartbeat("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(generation(), (Generation{5, 2}));
  EXPECT_TRUE(std::holds_alternative<Rejoin>(directive("n1")));
  EXPECT_EQ(directive("n2"), Directive{Continue{}});
}

TEST_F(Recovering, RestoresWhatWasSpent) {
  restart_over({"n1", "n2"}, 1, 2);
  HeartbeatRequest request = heartbeat_request("n1");
  request.restarts_spent = 2;
  heartbeat(request);
  heartbeat("n2");
  EXPECT_EQ(status().restarts_spent, 2);
  join_failed("n1");
  EXPECT_EQ(status().restarts_spent, 3);
}

TEST_F(Recovering, KeepsWhoHasFinished) {
  restart_over({"n1", "n2"}, 2, 2);
  HeartbeatRequest request = heartbeat_request("n1");
  request.state = AgentState::Finished;
  heartbeat(request);
  heartbeat("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(node_status("n1")->role, Role::Finished);
  leave("n2", LeaveKind::Succeeded);
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
}

TEST_F(Recovering, HoldsTheBlackboardUntilItIsClearWhatIsStale) {
  restart_over({"n1", "n2"}, 2, 2);
  const Ticket stale = next_ticket();
  const Ticket fresh = next_ticket();
  step(PublishReceived{stale, {Generation{4, 9}, "k", "old"}});
  step(PublishReceived{fresh, {Generation{5, 1}, "k", "new"}});
  const Ticket lookup = look_up(Generation{5, 1}, "k");
  EXPECT_TRUE(seen<Acknowledge>().empty());
  heartbeat("n1");
  heartbeat("n2");
  const auto answers = seen<Acknowledge>();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].refusal->reason, RefuseReason::StaleGeneration);
  EXPECT_FALSE(answers[1].refusal);
  EXPECT_EQ(std::get<std::string>(lookup_reply(lookup).value()), "new");
}

TEST_F(Recovering, ForgetsABlackboardCallWhoseClientWentAway) {
  restart_over({"n1"}, 1, 1);
  const Ticket lookup = look_up(Generation{5, 1}, "k");
  end_call(lookup);
  heartbeat("n1");
  EXPECT_FALSE(lookup_reply(lookup));
}

TEST_F(Recovering, ForgetsWhoGoes) {
  restart_over({"n1", "n2"}, 1, 2);
  heartbeat("n1");
  hold_watch("n1");
  lose_connection("n1");
  advance(config_.gone_grace);
  EXPECT_FALSE(node_status("n1"));
  EXPECT_EQ(phase(), Phase::Recovering);
}

TEST_F(Recovering, LastsLongerByTheLagOfTheService) {
  restart_over({"n1", "n2"}, 1, 2);
  heartbeat("n1");
  step(LagMeasured{seconds(7)});
  live(seconds(11), {"n1"});
  EXPECT_EQ(phase(), Phase::Recovering);
  live(seconds(1), {"n1"});
  EXPECT_NE(phase(), Phase::Recovering);
}

TEST_F(Recovering, ClosesForAParticipantThatGivesUp) {
  restart_over({"n1", "n2"}, 1, 2);
  heartbeat("n1");
  EXPECT_FALSE(leave("n1", LeaveKind::Failed));
  EXPECT_EQ(status().outcome, Outcome::Failed);
}

}  // namespace
}  // namespace lrun::rendezvous
