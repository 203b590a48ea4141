// Messages there and back, their limits, and the codes of refusals.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cctype>

#include "proto/rendezvous.pb.h"
#include "rendezvous/convert.h"
#include "rendezvous/convert_nouns.h"
#include "rendezvous/metrics.h"
#include "rendezvous/wire_limits.h"
#include "rendezvous/words.h"

namespace lrun::rendezvous {
namespace {

using testing::HasSubstr;

NodeFacts facts() {
  NodeFacts facts;
  facts.node = NodeId{"n2"};
  facts.incarnation = Incarnation{0xFFFF'FFFF'FFFF'FFFF};
  facts.slots = 8;
  facts.role = "trainer";
  facts.address = "10.0.0.2";
  facts.master_port = 29500;
  facts.fixed_rank = GroupRank{3};
  facts.labels = {{"rack", "r1"}, {"switch", "s4"}};
  return facts;
}

FirstCause cause() {
  return {.kind = FailureKind::OutOfMemory,
          .node = NodeId{"n2"},
          .global_rank = GlobalRank{17},
          .local_rank = LocalRank{1},
          .pid = 4711,
          .code = 9,
          .sentence = "rank 17 was ended by the kernel's memory killer"};
}

Assignment assignment() {
  Assignment assignment;
  assignment.generation = {7, 3};
  assignment.group_rank = GroupRank{1};
  assignment.group_world_size = 2;
  assignment.first_global_rank = GlobalRank{8};
  assignment.slots = 8;
  assignment.world_size = 16;
  assignment.first_role_rank = 8;
  assignment.role_world_size = 16;
  assignment.master_addr = "10.0.0.1";
  assignment.master_port = 29501;
  assignment.restarts_spent = 2;
  assignment.reason = GenerationReason::Stalled;
  return assignment;
}

template <class WireMessage, class Message>
auto there_and_back(const Message& message) {
  WireMessage wire;
  write(message, wire);
  WireMessage received;
  EXPECT_TRUE(received.ParseFromString(wire.SerializeAsString()));
  return read(received);
}

// The sentence with which a wire message is refused.
template <class WireMessage>
std::string refusal(const WireMessage& wire) {
  const auto converted = read(wire);
  const auto* refused = std::get_if<Refusal>(&converted);
  if (refused == nullptr) return "nothing was refused";
  EXPECT_EQ(refused->reason, RefuseReason::BadRequest);
  return refused->sentence;
}

// --- there and back
// ----------------------------------------------------------------------------------

TEST(RendezvousWireConvert, EveryFieldOfAJoinSurvives) {
  JoinRequest request{.facts = facts(),
                      .run_id = "run",
                      .last_seen = {7, 2},
                      .restarts_spent = 2,
                      .failure = cause()};
  const auto back = std::get<JoinRequest>(there_and_back<v1::JoinRequest>(request));
  EXPECT_EQ(back.facts, request.facts);
  EXPECT_EQ(back.run_id, "run");
  EXPECT_EQ(back.last_seen, request.last_seen);
  EXPECT_EQ(back.restarts_spent, 2);
  EXPECT_EQ(back.failure, request.failure);
}

TEST(RendezvousWireConvert, EveryFieldOfAHeartbeatSurvives) {
  HeartbeatRequest request;
  request.facts = facts();
  request.run_id = "run";
  request.running = assignment();
  request.state = AgentState::Done;
  request.restarts_spent = 1;
  request.progress = {.step = 5, .samples = 1280, .samples_per_second = 512.5};
  request.failure = cause();
  const auto back = std::get<HeartbeatRequest>(there_and_back<v1::HeartbeatRequest>(request));
  EXPECT_EQ(back.facts, request.facts);
  EXPECT_EQ(back.running, request.running);
  EXPECT_EQ(back.state, request.state);
  EXPECT_EQ(back.restarts_spent, 1);
  EXPECT_EQ(back.progress, request.progress);
  EXPECT_EQ(back.failure, request.failure);

  const HeartbeatReply reply{.directive = DrainNode{},
                             .interval = std::chrono::milliseconds(1500),
                             .lease = std::chrono::nanoseconds(5'000'000'001)};
  const auto answer = std::get<HeartbeatReply>(there_and_back<v1::HeartbeatReply>(reply));
  EXPECT_EQ(answer.directive, reply.directive);
  EXPECT_EQ(answer.interval, reply.interval);
  EXPECT_EQ(answer.lease, reply.lease);
}

TEST(RendezvousWireConvert, EveryDirectiveSurvives) {
  Rejoin rejoin;
  rejoin.reason = RejoinReason::WorkerFailed;
  rejoin.ended = {7, 3};
  for (const Directive& directive :
       {Directive(Continue{}), Directive(rejoin), Directive(DrainNode{}),
        Directive(StopJob{Outcome::NoProgress, cause()}),
        Directive(StopJob{Outcome::Succeeded, std::nullopt})}) {
    const WatchReply back = there_and_back<v1::WatchReply>(WatchReply(directive));
    EXPECT_EQ(std::get<Directive>(back), directive);
  }
  EXPECT_TRUE(
      std::holds_alternative<AskAgain>(there_and_back<v1::WatchReply>(WatchReply(AskAgain{}))));
}

TEST(RendezvousWireConvert, AWholeStatusSurvives) {
  Status status;
  status.config.run_id = "run";
  status.config.min_nodes = 2;
  status.config.max_nodes = 4;
  status.config.lease = std::chrono::milliseconds(5250);
  status.phase = Phase::Closed;
  status.generation = {7, 3};
  status.reason = GenerationReason::WorkerFailed;
  status.world_size = 16;
  status.restarts_spent = 2;
  status.restarts_by_kind = {{FailureKind::Signal, 1}, {FailureKind::Stalled, 1}};
  NodeStatus node;
  node.facts = facts();
  node.role = Role::Finished;
  node.draining = true;
  node.assignment = assignment();
  node.state = AgentState::Running;
  node.progress.step = 9;
  node.lease_left = std::chrono::seconds(3);
  node.is_ready = true;
  status.nodes = {node};
  status.outcome = Outcome::NoProgress;
  status.cause = cause();
  const auto back = std::get<Status>(there_and_back<v1::GetStatusReply>(status));
  EXPECT_EQ(back.config.lease, status.config.lease);
  EXPECT_EQ(back.config.max_nodes, 4);
  EXPECT_EQ(back.phase, Phase::Closed);
  EXPECT_EQ(back.generation, status.generation);
  EXPECT_EQ(back.restarts_by_kind, status.restarts_by_kind);
  ASSERT_EQ(back.nodes.size(), 1u);
  EXPECT_EQ(back.nodes[0].facts, node.facts);
  EXPECT_EQ(back.nodes[0].role, Role::Finished);
  EXPECT_EQ(back.nodes[0].assignment, node.assignment);
  EXPECT_EQ(back.nodes[0].lease_left, node.lease_left);
  EXPECT_TRUE(back.nodes[0].is_ready && back.nodes[0].draining);
  EXPECT_EQ(back.outcome, status.outcome);
  EXPECT_EQ(back.cause, status.cause);
}

// --- limits
// ------------------------------------------------------------------------------------------

TEST(RendezvousWireConvert, WhatExceedsALimitIsRefusedWithItsField) {
  v1::JoinRequest good;
  write(JoinRequest{.facts = facts(), .run_id = "run", .last_seen = {}, .failure = {}}, good);
  EXPECT_EQ(refusal(good), "nothing was refused");

  const auto spoilt = [&](auto spoil) {
    v1::JoinRequest wire = good;
    spoil(*wire.mutable_facts());
    return refusal(wire);
  };
  EXPECT_THAT(spoilt([](auto& wire) { wire.clear_node(); }), HasSubstr("facts.node"));
  EXPECT_THAT(spoilt([](auto& wire) { wire.set_node(std::string(256, 'x')); }), HasSubstr("255"));
  EXPECT_THAT(spoilt([](auto& wire) { wire.set_slots(0); }), HasSubstr("between 1 and 4096"));
  EXPECT_THAT(spoilt([](auto& wire) { wire.set_slots(-5); }), HasSubstr("is -5"));
  EXPECT_THAT(spoilt([](auto& wire) { wire.set_master_port(65536); }), HasSubstr("master_port"));
  EXPECT_THAT(spoilt([](auto& wire) { wire.set_fixed_rank(-1); }), HasSubstr("fixed_rank"));
  EXPECT_THAT(spoilt([](auto& wire) {
                for (int each = 0; each <= kLabelsMax; ++each) {
                  (*wire.mutable_labels())["l" + std::to_string(each)] = "v";
                }
              }),
              HasSubstr("at most 16"));
}

TEST(RendezvousWireConvert, UnknownEnumeratorsAreRefused) {
  for (const int unknown : {0, 9, -1, 1'000'000}) {
    v1::HeartbeatRequest wire;
    HeartbeatRequest request;
    request.facts = facts();
    write(request, wire);
    wire.set_state(static_cast<v1::AgentState>(unknown));
    EXPECT_THAT(refusal(wire), HasSubstr("'state'")) << unknown;
  }
  const WatchReply reply = read(v1::WatchReply{});
  EXPECT_THAT(std::get<Refusal>(reply).sentence, HasSubstr("the service sent an answer"));
}

TEST(RendezvousWireConvert, AnAssignmentThatContradictsItselfIsRefused) {
  v1::JoinReply wire;
  write(JoinReply(assignment()), wire);
  wire.mutable_assignment()->set_first_global_rank(12);  // 12 … 19 of 16
  EXPECT_THAT(std::get<Refusal>(read(wire)).sentence, HasSubstr("first_global_rank"));
}

TEST(RendezvousWireConvert, ASentenceIsCutAndCleanedSoThatItCanBeRead) {
  FirstCause broken = cause();
  broken.sentence = "caf\xC3\xA9 \xFF\xFE \xED\xA0\x80 \xC3" + std::string(2000, 'x');
  v1::FirstCause wire;
  write(broken, wire);
  v1::FirstCause received;
  ASSERT_TRUE(received.ParseFromString(wire.SerializeAsString()));
  EXPECT_THAT(received.sentence(), testing::StartsWith("caf\xC3\xA9 ?? ??? ?xxx"));
  EXPECT_EQ(received.sentence().size(), kSentenceBytesMax);
  EXPECT_EQ(clean_text("\xE2\x82\xAC", 2), "") << "never half a letter";
}

TEST(RendezvousWireConvert, ValuesMayHoldAnyBytes) {
  const PublishRequest request{{7, 3}, "key", std::string("\x00\xFF\x80", 3)};
  EXPECT_EQ(std::get<PublishRequest>(there_and_back<v1::PublishRequest>(request)).value,
            request.value);
}

// --- callers and refusals
// --------------------------------------------------------------------------------

TEST(RendezvousWireConvert, OtherVersionsAndOtherRunsAreTurnedAway) {
  v1::Caller caller;
  write_caller("run", caller);
  EXPECT_EQ(check_caller(caller, "run", AnyRun::Refused), std::nullopt);
  EXPECT_EQ(check_caller(caller, "other", AnyRun::Accepted)->reason, RefuseReason::WrongRun);
  caller.clear_run_id();
  EXPECT_EQ(check_caller(caller, "run", AnyRun::Accepted), std::nullopt);
  EXPECT_EQ(check_caller(caller, "run", AnyRun::Refused)->reason, RefuseReason::WrongRun);
  caller.set_protocol_version(99);
  EXPECT_THAT(check_caller(caller, "run", AnyRun::Accepted)->sentence, HasSubstr("version 99"));
}

// B141: no call was forgotten: each opens with the caller, which the server checks for all alike,
// and each is counted.
TEST(RendezvousWireConvert, EveryCallOfTheServiceNamesItsCaller) {
  const google::protobuf::ServiceDescriptor* const service =
      v1::JoinRequest::descriptor()->file()->FindServiceByName("Rendezvous");
  ASSERT_NE(service, nullptr);
  prometheus::Registry registry;
  const Metrics metrics(registry);
  const std::string exposed = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_GE(service->method_count(), 9);
  for (int each = 0; each < service->method_count(); ++each) {
    const auto* const method = service->method(each);
    const auto* const caller = method->input_type()->FindFieldByNumber(1);
    ASSERT_NE(caller, nullptr) << method->name();
    EXPECT_EQ(caller->message_type(), v1::Caller::descriptor()) << method->name();
    EXPECT_THAT(exposed, HasSubstr("code=\"OK\",method=\"" + method->name() + "\"")) << exposed;
  }
}

TEST(RendezvousWireConvert, EveryReasonComesBackWithItsSentence) {
  for (int value = 0; value <= static_cast<int>(RefuseReason::WrongRun); ++value) {
    const Refusal refusal{static_cast<RefuseReason>(value), "because"};
    const WireStatus status = to_status(refusal);
    EXPECT_NE(status.code, 0);
    EXPECT_NE(code_name(status.code), "UNKNOWN");
    EXPECT_EQ(to_refusal(status), refusal);
    EXPECT_EQ(to_refusal({status.code, "because", ""}), std::nullopt) << "gRPC's own word";
    EXPECT_EQ(to_refusal({14, "because", status.details}), std::nullopt) << "not the reason's code";
  }
  EXPECT_EQ(to_refusal({3, "", "\xFF\xFF\xFF"}), std::nullopt);
}

// The wire's enumerators are the C++ ones plus one: reordering either list is caught here.
TEST(RendezvousWireConvert, EnumeratorsOfTheWireMeanTheSame) {
  const auto expect_same = [](auto last, const std::string& prefix, auto name_of) {
    using Enum = decltype(last);
    for (int value = 0; value <= static_cast<int>(last); ++value) {
      std::string expected = prefix + std::string(word(static_cast<Enum>(value)));
      for (char& letter : expected) letter = static_cast<char>(std::toupper(letter));
      EXPECT_EQ(name_of(value + 1), expected);
    }
    EXPECT_EQ(name_of(static_cast<int>(last) + 2), "") << prefix << " has more on the wire";
  };
  expect_same(Phase::Closed, "phase_",
              [](int value) { return v1::Phase_Name(static_cast<v1::Phase>(value)); });
  expect_same(Role::Finished, "role_",
              [](int value) { return v1::Role_Name(static_cast<v1::Role>(value)); });
  expect_same(GenerationReason::Stalled, "generation_reason_", [](int value) {
    return v1::GenerationReason_Name(static_cast<v1::GenerationReason>(value));
  });
  expect_same(RefuseReason::WrongRun, "refuse_reason_", [](int value) {
    return v1::RefuseReason_Name(static_cast<v1::RefuseReason>(value));
  });
  expect_same(FailureKind::Refused, "failure_kind_",
              [](int value) { return v1::FailureKind_Name(static_cast<v1::FailureKind>(value)); });
  expect_same(Outcome::NoProgress, "outcome_",
              [](int value) { return v1::Outcome_Name(static_cast<v1::Outcome>(value)); });
  expect_same(AgentState::Done, "agent_state_",
              [](int value) { return v1::AgentState_Name(static_cast<v1::AgentState>(value)); });
}

}  // namespace
}  // namespace lrun::rendezvous
