#include "trainer/comm/tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "trainer/comm/tree_sum.h"

namespace lrun::comm {
namespace {

std::vector<Subtree> all_terms(int world_size, int leaves) {
  std::vector<Subtree> terms;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto mine = complete_subtrees(block_of(GlobalRank{rank}, world_size, leaves), leaves);
    terms.insert(terms.end(), mine.begin(), mine.end());
  }
  return terms;
}

// The definition, word for word.
float sum(const std::vector<float>& leaves, int a, int b) {
  if (b - a == 1) return leaves[static_cast<std::size_t>(a)];
  int h = 1;
  while (h * 2 < b - a) h *= 2;
  return sum(leaves, a, a + h) + sum(leaves, a + h, b);
}

TEST(Tree, SplitsAtTheLargestPowerOfTwo) {
  EXPECT_EQ(split_of({0, 2}), 1);
  EXPECT_EQ(split_of({0, 3}), 2);
  EXPECT_EQ(split_of({0, 4}), 2);
  EXPECT_EQ(split_of({0, 5}), 4);
  EXPECT_EQ(split_of({8, 12}), 10);
  EXPECT_THROW(split_of({3, 4}), std::invalid_argument);
}

TEST(Tree, BlocksAreThoseOfTheFormula) {
  EXPECT_EQ(block_of(GlobalRank{0}, 3, 8), (Subtree{0, 2}));
  EXPECT_EQ(block_of(GlobalRank{1}, 3, 8), (Subtree{2, 5}));
  EXPECT_EQ(block_of(GlobalRank{2}, 3, 8), (Subtree{5, 8}));
}

TEST(Tree, SubtreesOfAnUnalignedBlock) {
  EXPECT_EQ(complete_subtrees({2, 5}, 8), (std::vector<Subtree>{{2, 4}, {4, 5}}));
  EXPECT_EQ(complete_subtrees({0, 8}, 8), (std::vector<Subtree>{{0, 8}}));
  EXPECT_TRUE(complete_subtrees({3, 3}, 8).empty());
}

// The number of subtrees that the worst rank sends (the design's table).
TEST(Tree, WorstRankSendsAsManySubtreesAsTheTableSays) {
  struct Row {
    int leaves;
    std::vector<std::pair<int, std::size_t>> worst;  // world size, subtrees
  };
  const std::vector<Row> table = {
      {12, {{2, 2}, {3, 1}, {4, 2}, {5, 2}, {6, 1}, {7, 2}, {8, 2}, {12, 1}}},
      {16, {{2, 1}, {3, 3}, {4, 1}, {5, 2}, {6, 2}, {7, 2}, {8, 1}, {12, 1}, {16, 1}}},
      {48, {{2, 2}, {3, 1}, {4, 2}, {5, 5}, {6, 1}, {7, 3}, {8, 2}, {12, 1}, {16, 2}}},
      {64, {{2, 1}, {3, 5}, {4, 1}, {5, 5}, {6, 4}, {7, 4}, {8, 1}, {12, 3}, {16, 1}}}};
  for (const Row& row : table) {
    for (const auto& [world_size, expected] : row.worst) {
      std::size_t worst = 0;
      for (int rank = 0; rank < world_size; ++rank) {
        const auto block = block_of(GlobalRank{rank}, world_size, row.leaves);
        worst = std::max(worst, complete_subtrees(block, row.leaves).size());
      }
      EXPECT_EQ(worst, expected) << "K=" << row.leaves << " N=" << world_size;
    }
  }
}

// The parents of all nodes, from the definition.
std::vector<std::pair<Subtree, Subtree>> nodes_and_parents(Subtree node) {
  if (node.leaves() < 2) return {};
  std::vector<std::pair<Subtree, Subtree>> found;
  const int middle = split_of(node);
  for (const Subtree child : {Subtree{node.first, middle}, Subtree{middle, node.last}}) {
    found.emplace_back(child, node);
    const auto below = nodes_and_parents(child);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

// Every one is a node of the tree whose parent sticks out of the block.
bool is_maximal(const std::vector<Subtree>& subtrees, Subtree block, int leaves) {
  const auto nodes = nodes_and_parents({0, leaves});
  return std::all_of(subtrees.begin(), subtrees.end(), [&](const Subtree& subtree) {
    if (subtree == Subtree{0, leaves}) return true;
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
      const auto& [node, parent] = entry;
      return node == subtree && (parent.first < block.first || parent.last > block.last);
    });
  });
}

RC_GTEST_PROP(TreeProperty, SubtreesTileTheBlockAndAreMaximal, ()) {
  const int leaves = *rc::gen::inRange(1, 200);
  const int world_size = *rc::gen::inRange(1, 40);
  int next = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const Subtree block = block_of(GlobalRank{rank}, world_size, leaves);
    RC_ASSERT(block.first == next);
    for (const Subtree& subtree : complete_subtrees(block, leaves)) {
      RC_ASSERT(subtree.first == next);
      next = subtree.last;
    }
    RC_ASSERT(next == block.last);
    RC_ASSERT(is_maximal(complete_subtrees(block, leaves), block, leaves));
  }
  RC_ASSERT(next == leaves);
}

RC_GTEST_PROP(TreeProperty, SumEqualsTheDefinitionForEveryWorldSize, ()) {
  const int leaves = *rc::gen::inRange(1, 70);
  const int world_size = *rc::gen::inRange(1, leaves + 3);
  const auto elements = *rc::gen::element<std::size_t>(1, 3, 1024, 1500);
  // Magnitudes far apart, so that another order of additions shows.
  std::vector<std::vector<float>> values(static_cast<std::size_t>(leaves));
  for (auto& leaf : values) {
    leaf.resize(elements);
    const float scale = static_cast<float>(1 << *rc::gen::inRange(0, 24));
    for (std::size_t i = 0; i < elements; ++i) {
      leaf[i] = scale * (1.0f + static_cast<float>((i * 2654435761u) % 1000) / 7.0f);
    }
  }
  const auto sum_at = [&](int a, int b, std::size_t i) {
    std::vector<float> column;
    for (const auto& leaf : values) column.push_back(leaf[i]);
    return sum(column, a, b);
  };
  const auto terms = all_terms(world_size, leaves);
  std::vector<std::vector<float>> sums;
  std::vector<const float*> pointers;
  for (const Subtree& term : terms) {
    auto& one = sums.emplace_back();
    for (std::size_t i = 0; i < elements; ++i) one.push_back(sum_at(term.first, term.last, i));
  }
  for (const auto& one : sums) pointers.push_back(one.data());
  const TreeSum tree(terms, leaves);
  std::vector<float> result(elements);
  tree.add(pointers, result.data(), static_cast<std::int64_t>(elements));
  for (std::size_t i = 0; i < elements; ++i) RC_ASSERT(result[i] == sum_at(0, leaves, i));
  // In place, on any of the terms.
  const auto place = *rc::gen::inRange<std::size_t>(0, sums.size());
  tree.add(pointers, sums[place].data(), static_cast<std::int64_t>(elements));
  RC_ASSERT(sums[place] == result);
}

TEST(TreeSum, RefusesTermsThatDoNotTile) {
  const std::vector<Subtree> hole{{0, 2}, {3, 4}};
  const std::vector<Subtree> no_node{{0, 3}, {3, 4}};
  const std::vector<Subtree> twice{{0, 4}, {0, 4}};
  EXPECT_THROW(TreeSum(hole, 4), std::invalid_argument);
  EXPECT_THROW(TreeSum(no_node, 4), std::invalid_argument);
  EXPECT_THROW(TreeSum(twice, 4), std::invalid_argument);
  EXPECT_THROW(TreeSum({}, 4), std::invalid_argument);
}

}  // namespace
}  // namespace lrun::comm
