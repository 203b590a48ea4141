// The checks themselves: each invariant is broken once by hand and must be noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/invariants.h"

namespace lrun::rendezvous {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class InvariantsTest : public testing::Test {
 protected:
  InvariantsTest() {
    status_.config.max_nodes = 2;
    status_.config.max_restarts = 1;
  }

  std::vector<std::string> check(const Event& event, const std::vector<Action>& actions) {
    return invariants().check({now_, event, actions, status_, deadline_});
  }
  Invariants& invariants() {
    if (!invariants_) invariants_.emplace(status_before_);
    return *invariants_;
  }

  // Two nodes of two slots run generation 1.1.
  std::vector<Action> publish() {
    status_.nodes = {seat("a", 0, 0), seat("b", 1, 2)};
    status_.phase = Phase::Active;
    status_.generation = Generation{1, 1};
    return {GenerationPublished{{1, 1}, GenerationReason::Start, 2, 4, {}},
            PhaseChanged{Phase::Forming, Phase::Active, "published"}};
  }
  static NodeStatus seat(const std::string& node, int group_rank, int first_global_rank) {
    NodeStatus status;
    status.facts.node = NodeId{node};
    status.role = Role::Participant;
    status.lease_left = std::chrono::seconds(5);
    Assignment assignment;
    assignment.generation = Generation{1, 1};
    assignment.group_rank = GroupRank{group_rank};
    assignment.group_world_size = 2;
    assignment.first_global_rank = GlobalRank{first_global_rank};
    assignment.slots = 2;
    assignment.world_size = 4;
    status.assignment = assignment;
    return status;
  }

  Instant now_{std::chrono::seconds(10)};
  std::optional<Instant> deadline_;
  Status status_before_;
  Status status_;
  std::optional<Invariants> invariants_;
};

TEST_F(InvariantsTest, HoldForAProperGroup) {
  const auto actions = publish();
  EXPECT_THAT(check(TimePassed{}, actions), IsEmpty());
}

TEST_F(InvariantsTest, NoticeAnAnswerTooManyAndOneTooFew) {
  const Ticket ticket{7};
  EXPECT_THAT(check(DrainReceived{ticket, NodeId{"a"}}, {}), Contains(HasSubstr("not answered")));
  EXPECT_THAT(
      check(StopReceived{Ticket{8}, ""}, {Acknowledge{Ticket{8}, {}}, Acknowledge{Ticket{8}, {}}}),
      Contains(HasSubstr("not open")));
}

TEST_F(InvariantsTest, NoticeAnAnswerOfTheWrongKind) {
  const Ticket ticket{7};
  EXPECT_THAT(check(WatchReceived{ticket, {}}, {AnswerJoin{ticket, AskAgain{}}}),
              Contains(HasSubstr("wrong kind")));
}

TEST_F(InvariantsTest, NoticeAnAnswerAfterTheCallEnded) {
  const Ticket ticket{7};
  EXPECT_THAT(check(WatchReceived{ticket, {}}, {}), IsEmpty());
  EXPECT_THAT(check(CallEnded{ticket}, {}), IsEmpty());
  EXPECT_THAT(check(TimePassed{}, {AnswerWatch{ticket, AskAgain{}}}),
              Contains(HasSubstr("not open")));
}

TEST_F(InvariantsTest, NoticeAReusedGeneration) {
  const auto actions = publish();
  status_before_.generation = Generation{1, 1};
  EXPECT_THAT(check(TimePassed{}, actions), Contains(HasSubstr("not newer")));
}

TEST_F(InvariantsTest, NoticeRanksThatOverlapOrAreMissing) {
  const auto actions = publish();
  status_.nodes[1].assignment->first_global_rank = GlobalRank{1};
  EXPECT_THAT(check(TimePassed{}, actions), Contains(HasSubstr("does not cover")));
}

TEST_F(InvariantsTest, NoticeAssignmentsThatDisagree) {
  const auto actions = publish();
  status_.nodes[1].assignment->master_addr = "elsewhere";
  EXPECT_THAT(check(TimePassed{}, actions), Contains(HasSubstr("disagree")));
}

TEST_F(InvariantsTest, NoticeAGroupOfTheWrongSize) {
  const auto actions = publish();
  status_.config.max_nodes = 1;
  EXPECT_THAT(check(TimePassed{}, actions), Contains(HasSubstr("too many")));
}

TEST_F(InvariantsTest, NoticeAnExpiredMember) {
  const auto actions = publish();
  status_.nodes[0].lease_left = Duration::zero();
  EXPECT_THAT(check(TimePassed{}, actions), Contains(HasSubstr("expired")));
}

TEST_F(InvariantsTest, NoticeADeadlineInThePast) {
  deadline_ = now_;
  EXPECT_THAT(check(TimePassed{}, {}), Contains(HasSubstr("deadline")));
}

TEST_F(InvariantsTest, NoticeAGenerationChargedTwice) {
  status_.restarts_spent = 1;
  EXPECT_THAT(check(TimePassed{}, {RestartCharged{1, {}}}), IsEmpty());
  EXPECT_THAT(check(TimePassed{}, {RestartCharged{1, {}}}), Contains(HasSubstr("charged twice")));
}

TEST_F(InvariantsTest, NoticeABudgetOverspentOrForgotten) {
  status_.restarts_spent = 2;
  EXPECT_THAT(check(TimePassed{}, {}), Contains(HasSubstr("overspent")));
  status_.restarts_spent = 0;
  EXPECT_THAT(check(TimePassed{}, {}), Contains(HasSubstr("forgotten")));
}

TEST_F(InvariantsTest, NoticeARefusedMessageThatChangesSomething) {
  const auto actions = [&] {
    auto all = publish();
    all.push_back(Acknowledge{Ticket{1}, Refusal{RefuseReason::StaleGeneration, "stale"}});
    all.push_back(CallRefused{NodeId{"a"}, {RefuseReason::StaleGeneration, "stale"}});
    return all;
  }();
  EXPECT_THAT(check(LeaveReceived{Ticket{1}, {}}, actions), Contains(HasSubstr("refused message")));
}

TEST_F(InvariantsTest, NoticeAClosedJobThatOpensAgain) {
  status_.phase = Phase::Closed;
  status_.outcome = Outcome::Failed;
  EXPECT_THAT(check(TimePassed{}, {PhaseChanged{Phase::Forming, Phase::Closed, "over"}}),
              IsEmpty());
  status_.phase = Phase::Forming;
  EXPECT_THAT(check(TimePassed{}, {PhaseChanged{Phase::Closed, Phase::Forming, "again"}}),
              Contains(HasSubstr("opened again")));
}

}  // namespace
}  // namespace lrun::rendezvous
