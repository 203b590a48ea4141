#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "rendezvous/natural_order.h"
#include "rendezvous/rank_order.h"

namespace lrun::rendezvous {
namespace {

using testing::ElementsAre;

Candidate node(const std::string& name, std::optional<int> previous = {}) {
  Candidate candidate;
  candidate.facts.node = NodeId{name};
  candidate.facts.address = name + ".net";
  candidate.facts.master_port = 2000;
  if (previous) candidate.previous = GroupRank{*previous};
  return candidate;
}

Candidate fixed(const std::string& name, int rank) {
  Candidate candidate = node(name);
  candidate.facts.fixed_rank = GroupRank{rank};
  return candidate;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> found;
  for (const Candidate& candidate : candidates) found.push_back(candidate.facts.node.value);
  return found;
}

TEST(NaturalOrder, ComparesRunsOfDigitsByValue) {
  EXPECT_TRUE(natural_less("n2", "n10"));
  EXPECT_FALSE(natural_less("n10", "n2"));
  EXPECT_TRUE(natural_less("rack1-n9", "rack1-n10"));
  EXPECT_TRUE(natural_less("rack2-n1", "rack10-n0"));
  EXPECT_TRUE(natural_less("n", "n1"));
  EXPECT_TRUE(natural_less("a1b", "a1c"));
  EXPECT_FALSE(natural_less("n1", "n1"));
}

TEST(NaturalOrder, KnowsNoLargestNumber) {
  EXPECT_TRUE(natural_less("n99999999999999999999", "n100000000000000000000"));
}

TEST(NaturalOrder, TellsEqualNumbersApart) {
  EXPECT_NE(natural_less("n01", "n1"), natural_less("n1", "n01"));
}

RC_GTEST_PROP(NaturalOrder, IsAStrictTotalOrder, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::elementOf(std::string("a0129-")));
  const auto a = *text;
  const auto b = *text;
  const auto c = *text;
  RC_ASSERT(!natural_less(a, a));
  if (a != b) RC_ASSERT(natural_less(a, b) != natural_less(b, a));
  if (natural_less(a, b) && natural_less(b, c)) RC_ASSERT(natural_less(a, c));
}

TEST(ChooseParticipants, PrefersSurvivorsToEarlySpares) {
  std::vector<Candidate> candidates = {node("early"), node("b", 1), node("a", 0)};
  candidates[0].waits_since = Instant(std::chrono::seconds(1));
  candidates[1].waits_since = Instant(std::chrono::seconds(9));
  candidates[2].waits_since = Instant(std::chrono::seconds(9));
  EXPECT_THAT(names(choose_participants(candidates, 2)), ElementsAre("a", "b"));
  EXPECT_THAT(names(choose_participants(candidates, 3)), ElementsAre("a", "b", "early"));
}

TEST(ChooseParticipants, ThenTakesWhoWaitedLongest) {
  std::vector<Candidate> candidates = {node("n1"), node("n2"), node("n10")};
  candidates[0].waits_since = Instant(std::chrono::seconds(5));
  candidates[1].waits_since = Instant(std::chrono::seconds(3));
  candidates[2].waits_since = Instant(std::chrono::seconds(3));
  EXPECT_THAT(names(choose_participants(candidates, 2)), ElementsAre("n2", "n10"));
}

TEST(GroupOrder, OfNewcomersIsNatural) {
  EXPECT_THAT(names(order_by_group_rank({node("n10"), node("n2"), node("n1")})),
              ElementsAre("n1", "n2", "n10"));
}

TEST(GroupOrder, KeepsNewNeighboursTogether) {
  std::vector<Candidate> candidates = {node("n1"), node("n2"), node("n3"), node("n4")};
  candidates[0].facts.labels = {{"rack", "r10"}};
  candidates[1].facts.labels = {{"rack", "r2"}};
  candidates[2].facts.labels = {{"rack", "r10"}};
  candidates[3].facts.labels = {{"rack", "r2"}};
  EXPECT_THAT(names(order_by_group_rank(candidates)), ElementsAre("n2", "n4", "n1", "n3"));
}

TEST(GroupOrder, KeepsSurvivorsInTheirPlaces) {
  EXPECT_THAT(names(order_by_group_rank({node("new"), node("b", 1), node("c", 2)})),
              ElementsAre("new", "b", "c"));
  // B037: a survivor of rank 1 becomes rank 0.
  EXPECT_THAT(names(order_by_group_rank({node("b", 1)})), ElementsAre("b"));
  // Rank 0 is lost and nobody comes: only the last one moves.
  EXPECT_THAT(names(order_by_group_rank({node("b", 1), node("c", 2), node("d", 3)})),
              ElementsAre("d", "b", "c"));
}

TEST(GroupOrder, HonoursFixedRanks) {
  EXPECT_THAT(names(order_by_group_rank({fixed("a", 2), fixed("b", 0), fixed("c", 1)})),
              ElementsAre("b", "c", "a"));
  EXPECT_THAT(names(order_by_group_rank({node("x", 0), fixed("a", 0)})), ElementsAre("a", "x"));
}

TEST(GroupOrder, KeepsTheOrderOfFixedRanksThatAreTooLarge) {
  EXPECT_THAT(names(order_by_group_rank({fixed("a", 2), fixed("b", 1)})), ElementsAre("b", "a"));
  EXPECT_THAT(names(order_by_group_rank({fixed("z", 7), fixed("b", 0), node("c")})),
              ElementsAre("b", "c", "z"));
}

TEST(Assign, SumsSlotsOfNodesThatDiffer) {
  std::vector<Candidate> group = {node("a"), node("b"), node("c")};
  group[0].facts.slots = 8;
  group[1].facts.slots = 2;
  group[2].facts.slots = 4;
  const auto assignments = assign(group, {{7, 3}, GenerationReason::NodeLost, 2});
  ASSERT_EQ(assignments.size(), 3u);
  EXPECT_EQ(assignments[0].first_global_rank.value, 0);
  EXPECT_EQ(assignments[1].first_global_rank.value, 8);
  EXPECT_EQ(assignments[2].first_global_rank.value, 10);
  for (const Assignment& assignment : assignments) {
    EXPECT_EQ(assignment.world_size, 14);
    EXPECT_EQ(assignment.group_world_size, 3);
    EXPECT_EQ(assignment.master_addr, "a.net");
    EXPECT_EQ(assignment.master_port, 2000);
    EXPECT_EQ(assignment.generation, (Generation{7, 3}));
    EXPECT_EQ(assignment.restarts_spent, 2);
    EXPECT_EQ(assignment.reason, GenerationReason::NodeLost);
  }
}

TEST(Assign, RanksEachRoleByItself) {
  std::vector<Candidate> group = {node("a"), node("b"), node("c")};
  group[0].facts.slots = 2;
  group[1].facts.slots = 3;
  group[2].facts.slots = 4;
  group[1].facts.role = "evaluator";
  const auto assignments = assign(group, {{1, 1}, GenerationReason::Start, 0});
  EXPECT_EQ(assignments[0].first_role_rank, 0);
  EXPECT_EQ(assignments[0].role_world_size, 6);
  EXPECT_EQ(assignments[1].first_role_rank, 0);
  EXPECT_EQ(assignments[1].role_world_size, 3);
  EXPECT_EQ(assignments[2].first_role_rank, 2);
  EXPECT_EQ(assignments[2].role_world_size, 6);
}

// Any mixture of survivors, newcomers and fixed ranks.
std::vector<Candidate> any_candidates() {
  const int count = *rc::gen::inRange(1, 12);
  const auto olds =
      *rc::gen::unique<std::vector<int>>(static_cast<std::size_t>(count), rc::gen::inRange(0, 40));
  const auto ranks =
      *rc::gen::unique<std::vector<int>>(static_cast<std::size_t>(count), rc::gen::inRange(0, 40));
  std::vector<Candidate> candidates;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Candidate candidate = node("n" + std::to_string(i));
    candidate.facts.slots = *rc::gen::inRange(1, 9);
    const int kind = *rc::gen::inRange(0, 3);
    if (kind == 1) candidate.previous = GroupRank{olds[index]};
    if (kind == 2) candidate.facts.fixed_rank = GroupRank{ranks[index]};
    candidates.push_back(candidate);
  }
  return candidates;
}

RC_GTEST_PROP(GroupOrder, SeatsEverybodyOnceAndMovesOnlyWhoMust, ()) {
  const auto candidates = any_candidates();
  const auto ordered = order_by_group_rank(candidates);
  auto before = names(candidates);
  auto after = names(ordered);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  RC_ASSERT(before == after);

  const int size = static_cast<int>(ordered.size());
  int last_fixed = -1;
  for (int place = 0; place < size; ++place) {
    const Candidate& seated = ordered[static_cast<std::size_t>(place)];
    if (const auto rank = seated.facts.fixed_rank) {
      RC_ASSERT(last_fixed < rank->value);
      last_fixed = rank->value;
    } else if (seated.previous && seated.previous->value < size &&
               seated.previous->value != place) {
      // Its old place exists, so somebody with a fixed rank sits there.
      const auto& holder = ordered[static_cast<std::size_t>(seated.previous->value)];
      RC_ASSERT(holder.facts.fixed_rank.has_value());
    }
  }
}

RC_GTEST_PROP(Assign, CoversTheWorldExactlyOnce, ()) {
  const auto ordered = order_by_group_rank(any_candidates());
  const auto assignments = assign(ordered, {{1, 1}, GenerationReason::Start, 0});
  int next = 0;
  for (const Assignment& assignment : assignments) {
    RC_ASSERT(assignment.first_global_rank.value == next);
    next += assignment.slots;
  }
  for (const Assignment& assignment : assignments) RC_ASSERT(assignment.world_size == next);
}

}  // namespace
}  // namespace lrun::rendezvous
