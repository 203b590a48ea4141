// Evidence and identity: who is gone, who is silent, who may take whose name.
#include "rendezvous/members.h"
#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

std::vector<std::string> nodes(int count) {
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) names.push_back("n" + std::to_string(i));
  return names;
}

class Liveness : public StateFixture {};

TEST_F(Liveness, ForgivesANodeThatCallsAgainWithinTheGrace) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  lose_connection("n2");
  advance(milliseconds(150));
  hold_watch("n2");
  live(seconds(10), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_TRUE(seen<NodeDeparted>().empty());
}

TEST_F(Liveness, TakesAHeartbeatForACall) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  lose_connection("n2");
  heartbeat("n2");
  advance(seconds(1));
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Liveness, NoticesSilenceAtTheEndOfTheLease) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  heartbeat("n2");
  live(seconds(4), {"n1"});
  EXPECT_EQ(phase(), Phase::Active);
  live(seconds(1), {"n1"});
  EXPECT_EQ(phase(), Phase::Forming);
  ASSERT_EQ(seen<NodeDeparted>().size(), 1u);
  EXPECT_EQ(seen<NodeDeparted>()[0].evidence, Evidence::Silent);
}

TEST_F(Liveness, HearsANodeBeforeItJudgesIt) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  now_ += config_.lease;
  heartbeat("n1");
  ASSERT_EQ(seen<NodeDeparted>().size(), 1u);
  EXPECT_EQ(seen<NodeDeparted>()[0].node.value, "n2");
}

TEST_F(Liveness, LeavesItToLeasesWhenManyVanishAtOnce) {
  start(config_of(1, 4));
  form(nodes(4));
  for (const std::string& node : nodes(4)) heartbeat(node);
  for (const char* node : {"n1", "n2", "n3"}) lose_connection(node);
  advance(seconds(1));
  EXPECT_EQ(phase(), Phase::Active);
  live(seconds(10), nodes(4));
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_TRUE(seen<NodeDeparted>().empty());
}

TEST_F(Liveness, LeavesItToLeasesWhenTheyVanishOneAfterAnotherWithinAGrace) {
  start(config_of(1, 3));
  form(nodes(3));
  lose_connection("n1");
  advance(milliseconds(150));
  lose_connection("n2");
  advance(seconds(1));
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Liveness, BelievesAFewOfManyThatVanish) {
  start(config_of(1, 40));
  form(nodes(40));
  lose_connection("n3");
  lose_connection("n4");
  advance(config_.gone_grace);
  EXPECT_EQ(phase(), Phase::Forming);
  EXPECT_EQ(seen<NodeDeparted>().size(), 2u);
}

TEST_F(Liveness, PublishesNobodyWhoHasJustVanished) {
  start(config_of(1, 2));
  const Ticket first = join("n1");
  end_call(first);
  join("n2");
  EXPECT_NE(phase(), Phase::Active) << "n1 may be gone: wait for the grace";
  live(config_.last_call + seconds(1), {"n2"});
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n2").assignment->group_world_size, 1);
}

TEST_F(Liveness, KeepsANodeWhileAnotherOfItsCallsIsOpen) {
  start(config_of(2, 2));
  const Ticket replaced = join("n1");
  watch("n1");
  end_call(replaced);
  live(seconds(2), {"n1"});
  EXPECT_TRUE(node_status("n1"));
}

// B152: a slow service is not the nodes' fault.
TEST_F(Liveness, ExtendsLeasesByTheServicesOwnLag) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  now_ += seconds(20);
  step(LagMeasured{seconds(20)});
  EXPECT_EQ(phase(), Phase::Active);
  live(seconds(5), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
}

TEST_F(Liveness, RefusesASecondLivingIncarnation) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  const Incarnation living = agent("n2").facts.incarnation;
  renew_agent("n2");
  const Ticket ticket = join("n2");
  EXPECT_EQ(refused_join(ticket), RefuseReason::DuplicateNode);
  EXPECT_TRUE(is_retryable(RefuseReason::DuplicateNode));
  const std::string sentence = std::get<Refusal>(*join_reply(ticket)).sentence;
  EXPECT_NE(sentence.find(std::to_string(living.value)), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(std::to_string(agent("n2").facts.incarnation.value)), std::string::npos);
  EXPECT_EQ(phase(), Phase::Active);
}

// B040, B041: a replacement starts afresh, and the one it replaced changes nothing any more.
TEST_F(Liveness, LetsAReplacementSupersedeAnAgentWhoseConnectionClosed) {
  start(config_of(2, 2));
  form({"n1", "n2"});
  const FakeAgent old = agent("n2");
  lose_connection("n2");
  renew_agent("n2");
  join("n2");
  EXPECT_EQ(phase(), Phase::Forming) << "at once, without the grace";
  join("n1");
  EXPECT_EQ(phase(), Phase::Active);
  EXPECT_EQ(agent("n2").assignment->group_rank.value, 1) << "the node keeps its place";
  const Generation current = generation();

  const FakeAgent young = agent("n2");
  agent("n2") = old;
  EXPECT_EQ(std::get<Refusal>(heartbeat("n2")).reason, RefuseReason::Superseded);
  EXPECT_EQ(refused_join(join("n2")), RefuseReason::Superseded);
  EXPECT_EQ(leave("n2", LeaveKind::Failed)->reason, RefuseReason::Superseded);
  EXPECT_EQ(std::get<Refusal>(*watch_reply(watch("n2"))).reason, RefuseReason::Superseded);
  EXPECT_EQ(generation(), current);
  EXPECT_EQ(phase(), Phase::Active);

  agent("n2") = young;
  live(seconds(4), {"n1", "n2"});
  live(seconds(5), {"n1"});
  EXPECT_EQ(phase(), Phase::Forming) << "its own silence is noticed";
}

TEST_F(Liveness, TakesAnEvictedAgentBack) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  live(seconds(6), {"n1"});
  join("n1");
  ASSERT_EQ(generation(), (Generation{5, 2}));
  EXPECT_TRUE(std::holds_alternative<Rejoin>(directive("n2")));
  EXPECT_EQ(phase(), Phase::Active) << "the late heartbeat changed nothing";
  join("n2");
  join("n1");
  EXPECT_EQ(generation(), (Generation{5, 3}));
  EXPECT_EQ(status().world_size, 2);
}

TEST_F(Liveness, AcceptsARepeatedLeave) {
  start(config_of(1, 2));
  form({"n1", "n2"});
  EXPECT_FALSE(leave("n2", LeaveKind::Drained));
  EXPECT_FALSE(leave("n2", LeaveKind::Drained));
  EXPECT_EQ(seen<NodeDeparted>().size(), 1u);
}

TEST_F(Liveness, IgnoresACallThatEndsAfterItsAnswer) {
  start(config_of(2, 2));
  const Ticket first = join("n1");
  join("n2");
  end_call(first);
  end_call(Ticket{987'654});
  live(seconds(2), {"n1", "n2"});
  EXPECT_EQ(phase(), Phase::Active);
}

TEST(Members, SendHeartbeatsMoreRarelyInALargeGroup) {
  Config config;
  Members members(config);
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      NodeFacts facts;
      facts.node = NodeId{"n" + std::to_string(members.all().size())};
      members.add(facts, Instant{});
    }
  };
  add(512);
  EXPECT_EQ(members.heartbeat_interval(), seconds(1));
  EXPECT_EQ(members.lease(), seconds(5));
  add(512);
  EXPECT_EQ(members.heartbeat_interval(), seconds(2));
  EXPECT_EQ(members.lease(), seconds(6)) << "at least three heartbeats";
}

}  // namespace
}  // namespace lrun::rendezvous
