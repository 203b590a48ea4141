// The rows Forming and LastCall of the table of phase × event (architecture: rendezvous).
#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

class Forming : public StateFixture {};

TEST_F(Forming, PublishesAtOnceWhenAllAreThere) {
  start(config_of(2, 2));
  join("n1");
  EXPECT_EQ(phase(), Phase::Forming);
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(generation(), (Generation{5, 1}));
  EXPECT_EQ(agent("n1").assignment->group_rank.value, 0);
  EXPECT_EQ(agent("n2").assignment->group_rank.value, 1);
  EXPECT_EQ(agent("n1").assignment->master_addr, "n1.net");
  EXPECT_EQ(agent("n2").assignment->reason, GenerationReason::Start);
  EXPECT_EQ(status().world_size, 2);
}

TEST_F(Forming, RanksNewcomersInNaturalOrderWhoeverComesFirst) {
  start(config_of(3, 3));
  for (const char* node : {"n10", "n2", "n1"}) join(node);
  EXPECT_EQ(agent("n1").assignment->group_rank.value, 0);
  EXPECT_EQ(agent("n2").assignment->group_rank.value, 1);
  EXPECT_EQ(agent("n10").assignment->group_rank.value, 2);
}

TEST_F(Forming, GivesStragglersALastCall) {
  start(config_of(1, 3));
  join("n1");
  EXPECT_EQ(phase(), Phase::LastCall);
  advance(seconds(4));
  join("n2");
  live(seconds(20), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(6), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n1").assignment->group_world_size, 2);
}

TEST_F(Forming, EndsTheLastCallAtMaxNodes) {
  start(config_of(1, 2));
  join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Forming, FallsBackWhenTooFewAreLeft) {
  start(config_of(2, 3));
  const Ticket first = join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::LastCall);
  end_call(first);
  EXPECT_EQ(phase(), Phase::LastCall);
  advance(config_.gone_grace);
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_FALSE(node_status("n1"));
}

TEST_F(Forming, AnswersAHeartbeatOfWhoWaits) {
  start(config_of(2, 2));
  join("n1");
  EXPECT_EQ(directive("n1"), Directive{Continue{}});
}

TEST_F(Forming, SendsWhoDoesNotWaitToJoin) {
  start(config_of(2, 2));
  EXPECT_EQ(directive("n1"), Directive{Rejoin{}});
  HeartbeatRequest request = heartbeat_request("n1");
  request.running = Assignment{};
  request.running->generation = Generation{1, 1};
  const auto answer = heartbeat(request);
  const Directive expected = Rejoin{RejoinReason::Unknown, Generation{1, 1}};
  EXPECT_EQ(std::get<HeartbeatReply>(answer).directive, expected);
}

TEST_F(Forming, TellsParticipantsOfTheEndedGroupToJoin) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::LastCall);
  const Directive expected = Rejoin{RejoinReason::WorkerFailed, Generation{5, 1}};
  EXPECT_EQ(directive("n2"), expected);
  EXPECT_EQ(watched(held_watch_["n2"]), expected);
}

TEST_F(Forming, SaysAnOrderOnceByWatchAndAgainByHeartbeat) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  join_failed("n1");
  const Ticket again = watch("n2");
  EXPECT_FALSE(watch_reply(again)) << "a busy agent must not be told in a loop";
  EXPECT_TRUE(std::holds_alternative<Rejoin>(directive("n2")));
}

TEST_F(Forming, AsksHeldCallsToAskAgainBeforeTheHoldEnds) {
  start(config_of(2, 2));
  const Ticket join_ticket = join("n1");
  const Ticket watch_ticket = watch("n1");
  live(config_.hold, {"n1"});
  EXPECT_TRUE(std::holds_alternative<AskAgain>(join_reply(join_ticket).value()));
  EXPECT_TRUE(std::holds_alternative<AskAgain>(watch_reply(watch_ticket).value()));
  EXPECT_EQ(directive("n1"), Directive{Continue{}}) << "it is about to ask again";
  join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Forming, AnswersWhoIsBetweenTwoJoinsWithTheAssignment) {
  start(config_of(2, 2));
  join("n1");
  live(config_.hold, {"n1"});
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_FALSE(agent("n1").assignment);
  join("n1");
  ASSERT_TRUE(agent("n1").assignment);
  EXPECT_EQ(agent("n1").assignment->generation, generation());
  EXPECT_EQ(seen<GenerationPublished>().size(), 1u);
}

TEST_F(Forming, AnswersTheOlderOfTwoJoins) {
  start(config_of(2, 2));
  const Ticket first = join("n1");
  const Ticket second = join("n1");
  EXPECT_TRUE(std::holds_alternative<AskAgain>(join_reply(first).value()));
  EXPECT_FALSE(join_reply(second));
  EXPECT_EQ(seen<NodeJoined>().size(), 1u);
}

TEST_F(Forming, WaitsForSurvivorsAndNotForTheLastCall) {
  start(config_of(2, 3));
  form({"n1", "n2", "n3"});
  join_failed("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(10), {"n1", "n2", "n3"});
  EXPECT_EQ(phase(), Phase::LastCall);
  join("n3");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n3").assignment->group_rank.value, 2);
}

TEST_F(Forming, StopsWaitingForASurvivorThatNeverComes) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  join_failed("n1");
  live(config_.kill_grace + 2 * config_.heartbeat - seconds(1), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(1), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n1").assignment->group_world_size, 1);
  EXPECT_TRUE(std::holds_alternative<Rejoin>(directive("n2"))) << "left out, so join again";
}

TEST_F(Forming, NeverLetsAnEarlySpareDisplaceASlowSurvivor) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  join("spare");
  join_failed("n1");
  EXPECT_EQ(phase(), Phase::LastCall);
  live(seconds(5), {"n1", "n2", "spare"});
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n2").assignment->generation, generation());
  EXPECT_EQ(node_status("spare")->role, Role::Spare);
}

// B023: when everybody has died, nothing of the old group blocks the new one.
TEST_F(Forming, BeginsAnewAfterEverybodyDied) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  lose_connection("n1");
  lose_connection("n2");
  advance(config_.lease);
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_TRUE(status().nodes.empty());
  renew_agent("n1");
  renew_agent("n2");
  join("n1");
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(generation(), (Generation{5, 2}));
}

TEST_F(Forming, RefusesWhoWaitsTooLongAndSaysWhoCame) {
  Config config = config_of(3, 3);
  config.join_timeout = seconds(60);
  config.hold = seconds(600);
  start(config);
  const Ticket first = join("n1");
  live(seconds(30), {"n1"});
  join("n2");
  live(seconds(31), {"n1", "n2"});
  EXPECT_EQ(refused_join(first), RefuseReason::JoinTimedOut);
  const std::string sentence = std::get<Refusal>(*join_reply(first)).sentence;
  EXPECT_NE(sentence.find("2 of at least 3 nodes came within 60 s: n1, n2"), std::string::npos)
      << sentence;
  EXPECT_FALSE(node_status("n1"));
  EXPECT_TRUE(node_status("n2"));
}

TEST_F(Forming, TimesOutAcrossRepeatedJoins) {
  Config config = config_of(2, 2);
  config.join_timeout = seconds(30);
  start(config);
  join("n1");
  live(config.hold, {"n1"});
  const Ticket again = join("n1");
  live(seconds(11), {"n1"});
  EXPECT_EQ(refused_join(again), RefuseReason::JoinTimedOut);
}

TEST_F(Forming, RefusesAnotherRun) {
  start(config_of(1, 1));
  JoinRequest request = join_request("n1");
  request.run_id = "other";
  EXPECT_EQ(refused_join(join(request)), RefuseReason::WrongRun);
  HeartbeatRequest beat = heartbeat_request("n1");
  beat.run_id = "other";
  EXPECT_EQ(std::get<Refusal>(heartbeat(beat)).reason, RefuseReason::WrongRun);
  EXPECT_TRUE(status().nodes.empty());
}

// B025: both hosts are named at once, nothing hangs.
TEST_F(Forming, RefusesAFixedRankTwice) {
  start(config_of(2, 2));
  agent("n1").facts.fixed_rank = GroupRank{0};
  agent("n2").facts.fixed_rank = GroupRank{0};
  join("n1");
  const Ticket second = join("n2");
  EXPECT_EQ(refused_join(second), RefuseReason::DuplicateRank);
  const std::string sentence = std::get<Refusal>(*join_reply(second)).sentence;
  EXPECT_NE(sentence.find("'n1'"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("'n2'"), std::string::npos) << sentence;
  agent("n2").facts.fixed_rank = GroupRank{1};
  join("n2");
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Forming, HonoursFixedRanks) {
  start(config_of(2, 2));
  agent("n1").facts.fixed_rank = GroupRank{1};
  agent("n2").facts.fixed_rank = GroupRank{0};
  join("n1");
  join("n2");
  EXPECT_EQ(agent("n2").assignment->group_rank.value, 0);
  EXPECT_EQ(agent("n1").assignment->master_addr, "n2.net");
}

TEST_F(Forming, GivesAFixedRankToTheReplacementOfALostHost) {
  start(config_of(2, 2));
  agent("n1").facts.fixed_rank = GroupRank{0};
  agent("n2").facts.fixed_rank = GroupRank{1};
  agent("n3").facts.fixed_rank = GroupRank{1};
  form({"n1", "n2"});
  lose_connection("n2");
  join("n3");
  join("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n3").assignment->group_rank.value, 1);
}

TEST_F(Forming, RefusesBrokenRequests) {
  start(config_of(1, 2));
  const auto refused_with = [&](auto spoil) {
    JoinRequest request = join_request("n1");
    spoil(request);
    return refused_join(join(request)) == RefuseReason::BadRequest;
  };
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.slots = 0; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.slots = 1'000'000; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.node.value = ""; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.node.value = "a\nb"; }));
  EXPECT_TRUE(
      refused_with([](JoinRequest& request) { request.facts.node.value = std::string(300, 'n'); }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.master_port = 70'000; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.facts.fixed_rank = GroupRank{2}; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) { request.last_seen = {~0ull, 1}; }));
  EXPECT_TRUE(refused_with([](JoinRequest& request) {
    for (int i = 0; i < 40; ++i) request.facts.labels["label" + std::to_string(i)] = "x";
  }));
  EXPECT_TRUE(status().nodes.empty());
}

TEST_F(Forming, LeavesADrainedNodeOut) {
  start(config_of(2, 2));
  join("n1");
  hold_watch("n1");
  EXPECT_FALSE(drain("n1"));
  EXPECT_EQ(watched(held_watch_["n1"]), Directive{DrainNode{}});
  EXPECT_EQ(directive("n1"), Directive{DrainNode{}});
  join("n2");
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_FALSE(leave("n1", LeaveKind::Drained));
  EXPECT_FALSE(node_status("n1"));
}

TEST_F(Forming, NamesTheNodesWhenAnUnknownOneIsDrained) {
  start(config_of(2, 2));
  join("n1");
  const auto refusal = drain("n7");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, RefuseReason::UnknownNode);
  EXPECT_NE(refusal->sentence.find("n1"), std::string::npos) << refusal->sentence;
}

TEST_F(Forming, RaisesItsTermAboveAnyTermHeard) {
  start(config_of(1, 1), 5);
  agent("n1").last_seen = Generation{9, 4};
  join("n1");
  EXPECT_GT(generation(), (Generation{9, 4}));
}

}  // namespace
}  // namespace lrun::rendezvous
