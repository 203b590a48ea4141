#include <gtest/gtest.h>

#include "rendezvous/budget.h"
#include "rendezvous/formation.h"
#include "rendezvous/incarnations.h"

namespace lrun::rendezvous {
namespace {

using std::chrono::seconds;

constexpr Generation generation(std::uint64_t number) { return {1, number}; }

TEST(Budget, ChargesAGenerationOnce) {
  Budget budget(2);
  budget.begin(generation(1), Instant{});
  EXPECT_TRUE(budget.charge(generation(1), FailureKind::ExitCode, Instant{}));
  EXPECT_TRUE(budget.charge(generation(1), FailureKind::Signal, Instant{}));
  EXPECT_EQ(budget.restarts_spent(), 1);
  EXPECT_EQ(budget.by_kind(), (std::map<FailureKind, int>{{FailureKind::ExitCode, 1}}));
}

TEST(Budget, RefusesTheFailureBeyondIt) {
  Budget budget(1);
  EXPECT_TRUE(budget.charge(generation(1), FailureKind::ExitCode, Instant{}));
  EXPECT_FALSE(budget.charge(generation(2), FailureKind::ExitCode, Instant{}));
  EXPECT_EQ(budget.restarts_spent(), 1);
}

TEST(Budget, OfNothingAllowsNoFailure) {
  Budget budget(0);
  EXPECT_FALSE(budget.charge(generation(1), FailureKind::ExitCode, Instant{}));
}

TEST(Budget, TakesTheMaximumOfWhatItHears) {
  Budget budget(5);
  budget.hear(3);
  budget.hear(1);
  EXPECT_EQ(budget.restarts_spent(), 3);
  budget.hear(1'000);
  EXPECT_EQ(budget.restarts_spent(), 5);
  budget.hear(-7);
  EXPECT_EQ(budget.restarts_spent(), 5);
}

// B043: node losses never eat the budget of worker failures.
TEST(Budget, ChargesFailuresOfWorkersOnly) {
  for (const FailureKind kind :
       {FailureKind::ExitCode, FailureKind::Signal, FailureKind::OutOfMemory, FailureKind::Stalled,
        FailureKind::SpawnFailed, FailureKind::Reported}) {
    EXPECT_TRUE(is_charged(kind));
  }
  for (const FailureKind kind : {FailureKind::NodeLost, FailureKind::LeaseLost,
                                 FailureKind::Interrupted, FailureKind::Refused}) {
    EXPECT_FALSE(is_charged(kind));
  }
}

TEST(Backoff, DoublesUpToItsLimit) {
  EXPECT_EQ(backoff_after(0), seconds(0));
  EXPECT_EQ(backoff_after(1), seconds(0));
  EXPECT_EQ(backoff_after(2), seconds(1));
  EXPECT_EQ(backoff_after(3), seconds(2));
  EXPECT_EQ(backoff_after(6), seconds(16));
  EXPECT_EQ(backoff_after(7), seconds(30));
  EXPECT_EQ(backoff_after(1'000'000), seconds(30));
}

TEST(Backoff, GrowsWithFailuresAndEndsWithProgress) {
  Budget budget(10);
  Instant now{};
  std::uint64_t number = 0;
  const auto fail = [&] {
    budget.begin(generation(++number), now);
    now += seconds(1);
    budget.charge(generation(number), FailureKind::ExitCode, now);
    return *budget.retry_at() - now;
  };
  EXPECT_EQ(fail(), seconds(0));
  EXPECT_EQ(fail(), seconds(1));
  EXPECT_EQ(fail(), seconds(2));
  budget.note_step(40);
  EXPECT_EQ(fail(), seconds(0)) << "a step was completed";
  budget.note_step(40);
  EXPECT_EQ(fail(), seconds(1)) << "a replayed step is no progress";
}

TEST(Backoff, TakesALongRunOfSilentWorkersForProgress) {
  Budget budget(10);
  Instant now{};
  budget.begin(generation(1), now);
  budget.charge(generation(1), FailureKind::ExitCode, now);
  budget.begin(generation(2), now);
  now += kBackoffMax + seconds(1);
  budget.charge(generation(2), FailureKind::ExitCode, now);
  EXPECT_EQ(*budget.retry_at(), now);
}

TEST(Backoff, IsOverOnceAGroupRuns) {
  Budget budget(10);
  budget.charge(generation(1), FailureKind::ExitCode, Instant{});
  EXPECT_TRUE(budget.retry_at());
  budget.begin(generation(2), Instant{});
  EXPECT_FALSE(budget.retry_at());
}

class FormationTest : public testing::Test {
 protected:
  FormationTest() {
    config_.min_nodes = 2;
    config_.max_nodes = 4;
    formation_.enough_since = Instant(seconds(100));
    formation_.ended_at = Instant(seconds(90));
  }
  Config config_;
  Formation formation_;
};

TEST_F(FormationTest, WaitsForTheMinimumWithoutEnd) {
  formation_.candidates = 1;
  EXPECT_FALSE(publish_at(formation_, config_));
}

TEST_F(FormationTest, GivesTheFirstGroupALastCall) {
  formation_.candidates = 2;
  EXPECT_EQ(publish_at(formation_, config_), formation_.enough_since + config_.last_call);
  formation_.candidates = 4;
  EXPECT_EQ(publish_at(formation_, config_), formation_.enough_since);
}

TEST_F(FormationTest, GoesWhenAllSurvivorsWait) {
  formation_.candidates = 2;
  formation_.has_survivors = true;
  EXPECT_EQ(publish_at(formation_, config_), formation_.enough_since);
}

TEST_F(FormationTest, WaitsForSurvivorsAsLongAsAStopMayTake) {
  formation_.candidates = 4;
  formation_.has_survivors = true;
  formation_.absent_survivors = 1;
  EXPECT_EQ(publish_at(formation_, config_),
            formation_.ended_at + config_.kill_grace + 2 * config_.heartbeat);
}

TEST_F(FormationTest, WaitsForSurvivorsThatMayNotBeHeardYet) {
  formation_.candidates = 2;
  formation_.has_survivors = true;
  formation_.gathering_until = formation_.enough_since + seconds(3);
  EXPECT_EQ(publish_at(formation_, config_), formation_.gathering_until);
  formation_.candidates = 4;
  EXPECT_EQ(publish_at(formation_, config_), formation_.enough_since)
      << "there is no room for more";
}

TEST_F(FormationTest, RespectsTheBackoff) {
  formation_.candidates = 4;
  formation_.retry_at = Instant(seconds(500));
  EXPECT_EQ(publish_at(formation_, config_), formation_.retry_at);
  formation_.retry_at = Instant(seconds(5));
  EXPECT_EQ(publish_at(formation_, config_), formation_.enough_since);
}

TEST(Incarnations, SupersedeEachOtherPerNode) {
  Incarnations incarnations;
  const NodeId node{"n1"};
  incarnations.admit(node, Incarnation{1});
  incarnations.admit(NodeId{"n2"}, Incarnation{1});
  incarnations.admit(node, Incarnation{1});
  EXPECT_FALSE(incarnations.is_superseded(node, Incarnation{1}));
  incarnations.admit(node, Incarnation{2});
  EXPECT_TRUE(incarnations.is_superseded(node, Incarnation{1}));
  EXPECT_FALSE(incarnations.is_superseded(node, Incarnation{2}));
  EXPECT_FALSE(incarnations.is_superseded(NodeId{"n2"}, Incarnation{1}));
}

TEST(Incarnations, RememberWhoLeft) {
  Incarnations incarnations;
  const NodeId node{"n1"};
  incarnations.retire(node, Incarnation{1});
  EXPECT_TRUE(incarnations.has_left(node, Incarnation{1}));
  EXPECT_FALSE(incarnations.has_left(node, Incarnation{2}));
}

TEST(Incarnations, AreForgottenBeyondTheirBound) {
  Incarnations incarnations;
  const NodeId node{"n1"};
  for (std::uint64_t life = 0; life <= kLivesRememberedMax + 1; ++life) {
    incarnations.admit(node, Incarnation{life});
  }
  EXPECT_FALSE(incarnations.is_superseded(node, Incarnation{0}));
  EXPECT_TRUE(incarnations.is_superseded(node, Incarnation{kLivesRememberedMax}));
}

}  // namespace
}  // namespace lrun::rendezvous
