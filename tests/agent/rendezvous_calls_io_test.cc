// The agent's calls against a scripted link: what is repeated, what is not, and when it ends.
#include "agent/rendezvous_calls.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/agent/io_support.h"

namespace lrun::agent {
namespace {

using rendezvous::AcknowledgeAnswer;
using rendezvous::Answer;
using rendezvous::HeartbeatAnswer;
using rendezvous::OnAnswer;
using rendezvous::Unreachable;

// Answers each call with the next of its script; a call without one is held for ever.
class ScriptedLink final : public rendezvous::Link {
 public:
  explicit ScriptedLink(boost::asio::io_context& loop) : loop_(loop) {}

  void join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) override {
    join_requests.push_back(request);
    answer(joins, std::move(on_answer));
  }
  void watch(const WatchRequest&, OnAnswer<WatchReply> on_answer) override {
    ++watch_count;
    answer(watches, std::move(on_answer));
  }
  void heartbeat(const HeartbeatRequest&, OnAnswer<HeartbeatAnswer> on_answer) override {
    answer(heartbeats, std::move(on_answer));
  }
  void leave(const LeaveRequest&, OnAnswer<AcknowledgeAnswer> on_answer) override {
    ++leave_count;
    answer(leaves, std::move(on_answer));
  }
  void publish(const PublishRequest&, OnAnswer<AcknowledgeAnswer> on_answer) override {
    ++publish_count;
    answer(publishes, std::move(on_answer));
  }
  void lookup(const LookupRequest&, OnAnswer<LookupReply> on_answer) override {
    ++lookup_count;
    answer(lookups, std::move(on_answer));
  }
  std::string local_address() const override { return "10.1.2.3"; }

  std::deque<Answer<JoinReply>> joins;
  std::deque<Answer<WatchReply>> watches;
  std::deque<Answer<HeartbeatAnswer>> heartbeats;
  std::deque<Answer<AcknowledgeAnswer>> leaves;
  std::deque<Answer<AcknowledgeAnswer>> publishes;
  std::deque<Answer<LookupReply>> lookups;
  std::vector<JoinRequest> join_requests;
  int watch_count = 0;
  int leave_count = 0;
  int publish_count = 0;
  int lookup_count = 0;

 private:
  template <class Reply>
  void answer(std::deque<Answer<Reply>>& script, OnAnswer<Reply> on_answer) {
    if (script.empty()) return;
    Answer<Reply> next = std::move(script.front());
    script.pop_front();
    boost::asio::post(
        loop_, [next = std::move(next), on_answer = std::move(on_answer)] { on_answer(next); });
  }

  boost::asio::io_context& loop_;
};

class RendezvousCallsIoTest : public ::testing::Test {
 protected:
  template <class Kind>
  std::vector<Kind> events_of() const {
    std::vector<Kind> found;
    for (const Event& event : events) {
      if (const auto* wanted = std::get_if<Kind>(&event)) found.push_back(*wanted);
    }
    return found;
  }

  bool run_until(const std::function<bool()>& is_true) {
    return testing::eventually([&] {
      loop.restart();
      loop.run_for(std::chrono::milliseconds(5));
      return is_true();
    });
  }

  // Long enough for what should not happen to happen.
  void let_pass(Duration time) {
    const Instant end = std::chrono::steady_clock::now() + time;
    run_until([&] { return std::chrono::steady_clock::now() >= end; });
  }

  static Assignment assignment(std::uint64_t number) {
    Assignment made;
    made.generation = {.term = 1, .number = number};
    return made;
  }

  boost::asio::io_context loop;
  ScriptedLink link{loop};
  std::vector<Event> events;
  std::vector<Refusal> refusals;
  std::vector<HeartbeatResult> results;
  RendezvousCalls calls{
      loop,
      link,
      1,
      {.on_event = [this](Event event) { events.push_back(std::move(event)); },
       .on_refusal = [this](Refusal refusal) { refusals.push_back(refusal); },
       .on_heartbeat = [this](HeartbeatResult result) { results.push_back(result); }}};
  const Unreachable away{.host_answered = true, .sentence = "connection refused"};
};

// B009: refused connections are retried until the service is there.
TEST_F(RendezvousCallsIoTest, AJoinIsRepeatedUntilItIsAnswered) {
  link.joins = {away, away, AskAgain{}, assignment(7)};
  calls.join({});
  ASSERT_TRUE(run_until([&] { return !events_of<Assigned>().empty(); }));
  EXPECT_EQ(link.join_requests.size(), 4u);
  EXPECT_EQ(link.join_requests.back().facts.address, "10.1.2.3");
  EXPECT_EQ(events_of<ServiceUnreachable>().size(), 2u);
  EXPECT_TRUE(events_of<ServiceUnreachable>().front().host_answered);
  EXPECT_EQ(events_of<Assigned>().front().assignment.generation.number, 7u);
}

TEST_F(RendezvousCallsIoTest, AFinalFailureIsNotRepeated) {
  link.joins = {Unreachable{.host_answered = true, .sentence = "foreign key", .is_final = true}};
  calls.join({});
  ASSERT_TRUE(run_until([&] { return !events_of<ServiceUnreachable>().empty(); }));
  EXPECT_TRUE(events_of<ServiceUnreachable>().front().is_final);
  let_pass(std::chrono::milliseconds(200));
  EXPECT_EQ(link.join_requests.size(), 1u);
}

TEST_F(RendezvousCallsIoTest, ASecondJoinReplacesTheFirst) {
  link.joins = {assignment(1), assignment(2)};
  calls.join({});
  JoinRequest second;
  second.restarts_spent = 5;
  calls.join(second);
  ASSERT_TRUE(run_until([&] { return !events_of<Assigned>().empty(); }));
  let_pass(std::chrono::milliseconds(20));
  ASSERT_EQ(events_of<Assigned>().size(), 1u);
  EXPECT_EQ(events_of<Assigned>().front().assignment.generation.number, 2u);
}

TEST_F(RendezvousCallsIoTest, TheWatchStaysOpenFromTheFirstJoinOn) {
  link.watches = {AskAgain{}, Directive{Rejoin{RejoinReason::NodeLost, {}}}, away,
                  Refusal{.reason = RefuseReason::Superseded, .sentence = "replaced"},
                  Directive{DrainNode{}}};
  calls.join({});
  calls.join({});
  ASSERT_TRUE(run_until([&] { return link.watch_count == 6; }));
  const auto directives = events_of<DirectiveReceived>();
  ASSERT_EQ(directives.size(), 2u);
  const Directive expected = Rejoin{RejoinReason::NodeLost, {}};
  EXPECT_EQ(directives.front().directive, expected);
  EXPECT_FALSE(directives.front().about);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals.front().reason, RefuseReason::Superseded);
}

// A service that has nothing to hold a call for is not asked in a circle.
TEST_F(RendezvousCallsIoTest, AskAgainIsNotABusyLoop) {
  for (int answer = 0; answer < 1000; ++answer) link.watches.emplace_back(AskAgain{});
  calls.join({});
  let_pass(std::chrono::milliseconds(300));
  EXPECT_GE(link.watch_count, 1);
  EXPECT_LE(link.watch_count, 10);
}

TEST_F(RendezvousCallsIoTest, AHeartbeatIsSentOnceAndItsAnswerSaysWhatItIsAbout) {
  const HeartbeatReply reply{.directive = Rejoin{RejoinReason::NodeJoined, {}},
                             .interval = std::chrono::seconds(2),
                             .lease = std::chrono::seconds(9)};
  link.heartbeats = {HeartbeatAnswer{reply}, away};
  HeartbeatRequest request;
  request.running = assignment(4);
  calls.heartbeat(request);
  calls.heartbeat(request);
  ASSERT_TRUE(run_until([&] { return results.size() == 2; }));
  EXPECT_EQ(results, (std::vector{HeartbeatResult::Answered, HeartbeatResult::Failed}));
  ASSERT_EQ(events_of<HeartbeatAnswered>().size(), 1u);
  EXPECT_EQ(events_of<HeartbeatAnswered>().front().lease, Duration(std::chrono::seconds(9)));
  ASSERT_EQ(events_of<DirectiveReceived>().size(), 1u);
  EXPECT_EQ(events_of<DirectiveReceived>().front().about, (Generation{.term = 1, .number = 4}));
}

TEST_F(RendezvousCallsIoTest, LookupsLastAsLongAsTheirGeneration) {
  calls.enter_generation({.term = 1, .number = 1});
  link.lookups = {away, AskAgain{}, std::string("value")};
  calls.lookup({2}, {.generation = {.term = 1, .number = 1}, .key = "k"});
  ASSERT_TRUE(run_until([&] { return !events_of<LookupAnswered>().empty(); }));
  EXPECT_EQ(events_of<LookupAnswered>().front().value, "value");
  EXPECT_EQ(events_of<LookupAnswered>().front().local_rank, LocalRank{2});

  link.lookups = {away};
  link.publishes = {away};
  calls.lookup({2}, {.generation = {.term = 1, .number = 1}, .key = "k"});
  calls.publish({.generation = {.term = 1, .number = 1}, .key = "k", .value = "v"});
  calls.enter_generation({.term = 1, .number = 2});
  let_pass(std::chrono::milliseconds(200));
  EXPECT_EQ(link.lookup_count, 4);
  EXPECT_EQ(link.publish_count, 1);
}

TEST_F(RendezvousCallsIoTest, TheEndWaitsForALeaveThatIsStillUnderWay) {
  link.leaves = {away, AcknowledgeAnswer{}};
  calls.leave({});
  bool has_ended = false;
  calls.end([&] { has_ended = true; });
  ASSERT_TRUE(run_until([&] { return has_ended; }));
  EXPECT_EQ(link.leave_count, 2);
  // Nothing is told any more.
  EXPECT_TRUE(events.empty());
}

TEST_F(RendezvousCallsIoTest, TheEndIsBoundedWhenNobodyAnswers) {
  calls.leave({});
  bool has_ended = false;
  const auto began = std::chrono::steady_clock::now();
  calls.end([&] { has_ended = true; });
  ASSERT_TRUE(run_until([&] { return has_ended; }));
  EXPECT_GE(std::chrono::steady_clock::now() - began, kLeaveLimit);
}

}  // namespace
}  // namespace lrun::agent
