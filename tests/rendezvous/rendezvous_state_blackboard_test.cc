#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/blackboard.h"

namespace lrun::rendezvous {
namespace {

constexpr Generation kFirst{1, 1};
constexpr Generation kSecond{1, 2};
const Instant kLater = Instant(std::chrono::seconds(20));

class BlackboardTest : public testing::Test {
 protected:
  BlackboardTest() { board_.open(kFirst, actions_); }

  std::optional<Refusal> publish(Generation generation, const std::string& key,
                                 const std::string& value) {
    actions_.clear();
    board_.publish(Ticket{++last_ticket_}, {generation, key, value}, actions_);
    return std::get<Acknowledge>(actions_.at(0)).refusal;
  }
  Ticket look_up(Generation generation, const std::string& key) {
    actions_.clear();
    board_.lookup(Ticket{++last_ticket_}, {generation, key}, kLater, actions_);
    return Ticket{last_ticket_};
  }
  // What the last call answered to this lookup; none: it waits.
  std::optional<LookupReply> reply(Ticket ticket) const {
    for (const Action& action : actions_) {
      const auto* answer = std::get_if<AnswerLookup>(&action);
      if (answer && answer->ticket == ticket) return answer->reply;
    }
    return std::nullopt;
  }
  std::string value(Ticket ticket) const {
    const auto answer = reply(ticket);
    const auto* text = answer ? std::get_if<std::string>(&*answer) : nullptr;
    return text ? *text : "(none)";
  }
  RefuseReason refused(Ticket ticket) const {
    return std::get<Refusal>(reply(ticket).value()).reason;
  }

  Blackboard board_;
  std::vector<Action> actions_;
  std::uint64_t last_ticket_ = 0;
};

TEST_F(BlackboardTest, AnswersAtOnceWhatIsThere) {
  EXPECT_FALSE(publish(kFirst, "id", "value"));
  EXPECT_EQ(value(look_up(kFirst, "id")), "value");
}

TEST_F(BlackboardTest, AnswersEveryWaitingLookupOfTheKeyAndNoOther) {
  const Ticket one = look_up(kFirst, "id");
  const Ticket two = look_up(kFirst, "id");
  const Ticket other = look_up(kFirst, "else");
  EXPECT_FALSE(reply(one));
  publish(kFirst, "id", "v");
  EXPECT_EQ(value(one), "v");
  EXPECT_EQ(value(two), "v");
  EXPECT_FALSE(reply(other));
  publish(kFirst, "else", "w");
  EXPECT_EQ(value(other), "w");
}

TEST_F(BlackboardTest, ReplacesAnEarlierValue) {
  publish(kFirst, "id", "old");
  publish(kFirst, "id", "new");
  EXPECT_EQ(value(look_up(kFirst, "id")), "new");
}

TEST_F(BlackboardTest, KeepsAnEmptyValue) {
  publish(kFirst, "id", "");
  EXPECT_EQ(value(look_up(kFirst, "id")), "");
}

TEST_F(BlackboardTest, AsksToAskAgainBeforeTheHoldEnds) {
  const Ticket ticket = look_up(kFirst, "id");
  EXPECT_EQ(board_.next_deadline(), kLater);
  actions_.clear();
  board_.pass_time(kLater - std::chrono::nanoseconds(1), actions_);
  EXPECT_FALSE(reply(ticket));
  board_.pass_time(kLater, actions_);
  EXPECT_TRUE(std::holds_alternative<AskAgain>(reply(ticket).value()));
  EXPECT_FALSE(board_.next_deadline());
}

TEST_F(BlackboardTest, FencesOtherGenerations) {
  EXPECT_EQ(publish(kSecond, "id", "v")->reason, RefuseReason::StaleGeneration);
  EXPECT_EQ(refused(look_up(Generation{}, "id")), RefuseReason::StaleGeneration);
  EXPECT_FALSE(reply(look_up(kFirst, "id"))) << "the refused value must not be there";
}

// B150: every value a round needs belongs to that round.
TEST_F(BlackboardTest, ForgetsEverythingWithTheGeneration) {
  publish(kFirst, "id", "old");
  const Ticket waiting = look_up(kFirst, "other");
  actions_.clear();
  board_.open(kSecond, actions_);
  EXPECT_EQ(refused(waiting), RefuseReason::StaleGeneration);
  EXPECT_EQ(publish(kFirst, "id", "late")->reason, RefuseReason::StaleGeneration);
  EXPECT_FALSE(reply(look_up(kSecond, "id")));
}

TEST_F(BlackboardTest, ForgetsALookupWhoseClientWentAway) {
  const Ticket ticket = look_up(kFirst, "id");
  EXPECT_TRUE(board_.forget(ticket));
  EXPECT_FALSE(board_.forget(ticket));
  publish(kFirst, "id", "v");
  EXPECT_FALSE(reply(ticket));
}

TEST_F(BlackboardTest, RefusesWhatIsTooLong) {
  const std::string longest_key(kKeyBytesMax, 'k');
  const std::string longest_value(kValueBytesMax, 'v');
  EXPECT_FALSE(publish(kFirst, longest_key, longest_value));
  EXPECT_EQ(publish(kFirst, longest_key + "k", "v")->reason, RefuseReason::BadRequest);
  EXPECT_EQ(publish(kFirst, "k", longest_value + "v")->reason, RefuseReason::BadRequest);
  EXPECT_EQ(publish(kFirst, "", "v")->reason, RefuseReason::BadRequest);
  EXPECT_EQ(refused(look_up(kFirst, longest_key + "k")), RefuseReason::BadRequest);
}

TEST_F(BlackboardTest, HoldsABoundedNumberOfBytes) {
  const std::string value(kValueBytesMax, 'v');
  std::size_t stored = 0;
  while (!publish(kFirst, "key" + std::to_string(stored), value)) ++stored;
  EXPECT_LE(stored * kValueBytesMax, kBlackboardBytesMax);
  EXPECT_GT((stored + 2) * kValueBytesMax, kBlackboardBytesMax - stored * 16);
  EXPECT_FALSE(publish(kFirst, "key0", value)) << "a value that is there may be replaced";
  actions_.clear();
  board_.open(kSecond, actions_);
  EXPECT_FALSE(publish(kSecond, "key", value)) << "room comes back with the next generation";
}

TEST_F(BlackboardTest, HoldsABoundedNumberOfKeys) {
  for (std::size_t i = 0; i < kKeysMax; ++i) {
    ASSERT_FALSE(publish(kFirst, "key" + std::to_string(i), ""));
  }
  EXPECT_EQ(publish(kFirst, "one more", "")->reason, RefuseReason::BadRequest);
}

TEST_F(BlackboardTest, HoldsABoundedNumberOfLookups) {
  for (std::size_t i = 0; i < kWaitingLookupsMax; ++i) {
    ASSERT_FALSE(reply(look_up(kFirst, "key" + std::to_string(i))));
  }
  EXPECT_EQ(refused(look_up(kFirst, "one more")), RefuseReason::BadRequest);
  publish(kFirst, "key7", "v");
  EXPECT_FALSE(reply(look_up(kFirst, "one more")));
}

TEST_F(BlackboardTest, RefusesEverythingOnceClosed) {
  const Ticket waiting = look_up(kFirst, "id");
  actions_.clear();
  board_.close({RefuseReason::Closed, "over"}, actions_);
  EXPECT_EQ(refused(waiting), RefuseReason::Closed);
  EXPECT_EQ(publish(kFirst, "id", "v")->reason, RefuseReason::Closed);
  EXPECT_EQ(refused(look_up(kFirst, "id")), RefuseReason::Closed);
}

}  // namespace
}  // namespace lrun::rendezvous
