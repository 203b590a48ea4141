// The rows Active and Closed of the table of phase × event (architecture: rendezvous).
#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

class Active : public StateFixture {};

TEST_F(Active, LetsParticipantsGoOn) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  live(seconds(120), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(directive("n1"), Directive{Continue{}});
  EXPECT_EQ(seen<GenerationPublished>().size(), 1u);
}

TEST_F(Active, RepeatsTheAssignmentWhoseAnswerWasLost) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  const Assignment assigned = *agent("n2").assignment;
  agent("n2").assignment.reset();
  agent("n2").last_seen = Generation{};
  join("n2");
  ASSERT_TRUE(agent("n2").assignment);
  EXPECT_EQ(*agent("n2").assignment, assigned);
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Active, SendsWhoDoesNotRunTheGenerationToJoin) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  HeartbeatRequest request = heartbeat_request("n2");
  request.running.reset();
  EXPECT_EQ(std::get<HeartbeatReply>(heartbeat(request)).directive, Directive{Continue{}})
      << "its assignment may still be on the way";
  live(seconds(3), {"n1", "n2"});
  EXPECT_EQ(std::get<HeartbeatReply>(heartbeat(request)).directive, Directive{Rejoin{}});
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Active, FormsAgainForAParticipantThatRanItAndComesBack) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join("n1");
  EXPECT_EQ(phase(), Phase::Forming);
  const Directive expected = Rejoin{RejoinReason::GenerationEnded, Generation{5, 1}};
  EXPECT_EQ(watched(held_watch_["n2"]), expected);
  join("n2");
  EXPECT_EQ(generation(), (Generation{5, 2}));
  EXPECT_EQ(status().restarts_spent, 0);
}

TEST_F(Active, KeepsANewcomerBeyondMaxNodesAsSpare) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  const Ticket ticket = join("n3");
  EXPECT_FALSE(join_reply(ticket));
  EXPECT_EQ(node_status("n3")->role, Role::Spare);
  EXPECT_EQ(directive("n3"), Directive{Continue{}});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_TRUE(is_full(status()));
}

TEST_F(Active, KeepsASpareWithoutTimeLimit) {
  Config config = config_of(1, 1);
  config.join_timeout = seconds(60);
  start(config);
  form({"n1"});
  join("n2");
  for (int minute = 0; minute < 5; ++minute) {
    live(seconds(60), {"n1", "n2"});
    join("n2");
  }
  EXPECT_EQ(node_status("n2")->role, Role::Spare);
}

// B020: late nodes wait and are let in, neither they nor the job die.
TEST_F(Active, GrowsWhenANewcomerFindsRoom) {
  start(config_of(1, 3));
  form({"n1", "n2"});
  EXPECT_FALSE(is_full(status()));
  live(seconds(5), {"n1", "n2"});
  join("n0");
  EXPECT_EQ(phase(), Phase::LastCall);
  const Directive expected = Rejoin{RejoinReason::NodeJoined, Generation{5, 1}};
  EXPECT_EQ(watched(held_watch_["n1"]), expected);
  join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n0").assignment->group_rank.value, 2) << "survivors keep their places";
  EXPECT_EQ(agent("n1").assignment->group_rank.value, 0);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::NodeJoined);
  EXPECT_EQ(agent("n1").assignment->master_addr, "n1.net");
  EXPECT_EQ(status().restarts_spent, 0);
}

TEST_F(Active, GrowsNotBeforeItsCooldown) {
  Config config = config_of(1, 2);
  config.grow_cooldown = seconds(60);
  start(config);
  form({"n1"});
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  live(seconds(31), {"n1", "n2"});
  join("n2");
  live(seconds(29), {"n1", "n2"});
  EXPECT_NE(phase(), Phase::Active);
}

TEST_F(Active, DoesNotGrowWhenSomebodyHasFinished) {
  start(config_of(2, 3));
  form({"n1", "n2"});
  EXPECT_FALSE(leave("n1", LeaveKind::Succeeded));
  join("n3");
  EXPECT_EQ(phase(), Phase::Active);
}

// B029, B032: the loss is noticed by itself, the survivors form a new group.
TEST_F(Active, FormsAgainWithoutALostNode) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  lose_connection("n2");
  EXPECT_EQ(phase(), Phase::Active);
  advance(config_.gone_grace);
  EXPECT_EQ(phase(), Phase::Forming);
  const Directive expected = Rejoin{RejoinReason::NodeLost, Generation{5, 1}};
  EXPECT_EQ(watched(held_watch_["n1"]), expected);
  join("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::NodeLost);
  EXPECT_EQ(status().restarts_spent, 0);
}

TEST_F(Active, LetsASpareTakeThePlaceOfALostNode) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join("n3");
  lose_connection("n1");
  advance(config_.gone_grace);
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n3").assignment->group_rank.value, 0);
  EXPECT_EQ(agent("n2").assignment->group_rank.value, 1);
  EXPECT_EQ(agent("n2").assignment->master_addr, "n3.net");
}

TEST_F(Active, FormsAgainAfterADrain) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  EXPECT_FALSE(drain("n2"));
  EXPECT_EQ(watched(held_watch_["n2"]), Directive{DrainNode{}});
  EXPECT_EQ(phase(), Phase::Active) << "it finishes its step first";
  EXPECT_TRUE(node_status("n2")->draining);
  EXPECT_FALSE(leave("n2", LeaveKind::Drained));
  const Directive expected = Rejoin{RejoinReason::NodeDrained, Generation{5, 1}};
  EXPECT_EQ(watched(held_watch_["n1"]), expected);
  join("n1");
  EXPECT_EQ(agent("n1").assignment->reason, GenerationReason::Drained);
  EXPECT_EQ(refused_join(join("n2")), RefuseReason::Superseded) << "a drained agent stays away";
  renew_agent("n2");
  join("n2");
  EXPECT_TRUE(node_status("n2"));
}

TEST_F(Active, ClosesWhenTheLastParticipantHasFinished) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  EXPECT_FALSE(leave("n1", LeaveKind::Succeeded));
  EXPECT_EQ(node_status("n1")->role, Role::Finished);
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(directive("n1"), Directive{Continue{}});
  EXPECT_FALSE(leave("n2", LeaveKind::Succeeded));
  EXPECT_EQ(phase(), Phase::Closed);
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
  const Directive expected = StopJob{Outcome::Succeeded, {}};
  EXPECT_EQ(watched(held_watch_["n1"]), expected);
  EXPECT_EQ(watched(held_watch_["n2"]), expected);
}

TEST_F(Active, LearnsOfALostLeaveFromHeartbeats) {
  start(config_of(1, 1));
  form({"n1"});
  HeartbeatRequest request = heartbeat_request("n1");
  request.state = AgentState::Finished;
  heartbeat(request);
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
}

TEST_F(Active, DoesNotMissWhoHasFinished) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  leave("n1", LeaveKind::Succeeded);
  lose_connection("n1");
  live(seconds(60), {"n2"});
  EXPECT_EQ(phase(), Phase::Active);
  leave("n2", LeaveKind::Succeeded);
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
}

// Found by the simulation (seed 104564): the lease of a finished node, long over, became a deadline
// in the past when the silence of another one ended the group.
TEST_F(Active, JudgesWhoHasFinishedWithTheEndOfTheGroup) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  leave("n1", LeaveKind::Succeeded);
  lose_connection("n1");
  live(seconds(60), {"n2"});
  advance(config_.lease);
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_FALSE(node_status("n1"));
  EXPECT_FALSE(node_status("n2"));
}

TEST_F(Active, ClosesWithoutAFinishedNodeThatWasReplaced) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  leave("n1", LeaveKind::Succeeded);
  lose_connection("n1");
  renew_agent("n1");
  join("n1");
  EXPECT_EQ(phase(), Phase::Active);
  leave("n2", LeaveKind::Succeeded);
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
}

TEST_F(Active, RestartsWhoHasFinishedWhenAnotherFails) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  leave("n1", LeaveKind::Succeeded);
  join_failed("n2");
  EXPECT_TRUE(std::holds_alternative<Rejoin>(watched(held_watch_["n1"])));
  join("n1");
  EXPECT_EQ(generation(), (Generation{5, 2}));
  EXPECT_EQ(node_status("n1")->role, Role::Participant);
}

TEST_F(Active, ClosesWhenAParticipantGivesUp) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  EXPECT_FALSE(leave("n2", LeaveKind::Failed));
  EXPECT_EQ(status().outcome, Outcome::Failed);
  EXPECT_EQ(status().cause, exit_cause("n2"));
  const Directive expected = StopJob{Outcome::Failed, exit_cause("n2")};
  EXPECT_EQ(watched(held_watch_["n1"]), expected);
}

TEST_F(Active, IgnoresALeaveOfAnOlderGeneration) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join_failed("n1");
  join("n2");
  ASSERT_EQ(generation(), (Generation{5, 2}));
  agent("n2").last_seen = Generation{5, 1};
  EXPECT_EQ(leave("n2", LeaveKind::Failed)->reason, RefuseReason::StaleGeneration);
  EXPECT_EQ(leave("n2", LeaveKind::Succeeded)->reason, RefuseReason::StaleGeneration);
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(node_status("n2")->role, Role::Participant);
}

TEST_F(Active, RaisesItsTermWhenANewerGenerationIsHeard) {
  start(config_of(1, 2), 5);
  form({"n1", "n2"});
  HeartbeatRequest request = heartbeat_request("n2");
  request.running->generation = Generation{8, 3};
  heartbeat(request);
  EXPECT_NE(phase(), Phase::Active);
  join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_GT(generation(), (Generation{8, 3}));
}

TEST_F(Active, ServesABlackboardPerGeneration) {
  start(config_of(1, 1));
  form({"n1"});
  const Generation first = generation();
  const Ticket waiting = look_up(first, "id");
  EXPECT_FALSE(publish_value(first, "id", "v"));
  EXPECT_EQ(std::get<std::string>(lookup_reply(waiting).value()), "v");
  join_failed("n1");
  ASSERT_GT(generation(), first);
  EXPECT_EQ(publish_value(first, "id", "late")->reason, RefuseReason::StaleGeneration);
  EXPECT_FALSE(lookup_reply(look_up(generation(), "id")));
}

TEST_F(Active, SendsTheConfiguredHeartbeatToASmallGroup) {
  start(config_of(1, 1));
  form({"n1"});
  const auto reply = std::get<HeartbeatReply>(heartbeat("n1"));
  EXPECT_EQ(reply.interval, config_.heartbeat);
  EXPECT_EQ(reply.lease, config_.lease);
}

class Closed : public StateFixture {
 protected:
  Closed() {
    start(config_of(1, 2));
    form({"n1", "n2"});
    leave("n1", LeaveKind::Succeeded);
    leave("n2", LeaveKind::Succeeded);
  }
};

// B018: a clear refusal that names the option.
TEST_F(Closed, RefusesJoinsWithTheOutcome) {
  const Ticket ticket = join("n3");
  EXPECT_EQ(refused_join(ticket), RefuseReason::Closed);
  const std::string sentence = std::get<Refusal>(*join_reply(ticket)).sentence;
  EXPECT_NE(sentence.find("succeeded"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("--rdzv-id"), std::string::npos) << sentence;
  EXPECT_TRUE(is_full(status())) << "nobody else gets in";
}

TEST_F(Closed, StopsWhoeverAsks) {
  const Directive expected = StopJob{Outcome::Succeeded, {}};
  EXPECT_EQ(directive("n1"), expected);
  EXPECT_EQ(directive("stranger"), expected);
  EXPECT_EQ(watched(watch("other")), expected);
}

TEST_F(Closed, StaysClosed) {
  EXPECT_FALSE(leave("n1", LeaveKind::Failed));
  EXPECT_EQ(drain("n1")->reason, RefuseReason::Closed);
  EXPECT_EQ(publish_value(generation(), "k", "v")->reason, RefuseReason::Closed);
  const Ticket stop = next_ticket();
  step(StopReceived{stop, "again"});
  EXPECT_EQ(status().outcome, Outcome::Succeeded);
  EXPECT_EQ(seen<JobClosed>().size(), 1u);
}

TEST_F(Closed, ForgetsNodesOnceTheyAreGone) {
  advance(config_.lease);
  EXPECT_TRUE(status().nodes.empty());
  EXPECT_FALSE(machine_->next_deadline());
}

TEST_F(Active, StopsForAllOnRequestWithItsReason) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  const Ticket waiting = join("n3");
  step(StopReceived{next_ticket(), "asked by lrun stop"});
  EXPECT_EQ(status().outcome, Outcome::Stopped);
  const auto told = std::get<StopJob>(watched(held_watch_["n1"]));
  EXPECT_EQ(told.outcome, Outcome::Stopped);
  EXPECT_EQ(told.cause->sentence, "asked by lrun stop");
  EXPECT_EQ(refused_join(waiting), RefuseReason::Closed);
}

}  // namespace
}  // namespace lrun::rendezvous
