#include "trainer/parallel/accumulation.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>

namespace lrun::parallel {
namespace {

std::string sum_text(const std::string& left, const std::string& right) {
  std::string text(1, '(');
  text.append(left).append(1, '+').append(right).append(1, ')');
  return text;
}

// A sum as it is written: "((0+1)+2)".
std::string canonical(comm::Subtree node) {
  if (node.leaves() == 1) return std::to_string(node.first);
  const int split = comm::split_of(node);
  return sum_text(canonical({node.first, split}), canonical({split, node.last}));
}

// Runs a plan on text instead of numbers; buffers by index.
std::map<int, std::string> run(const AccumulationPlan& plan) {
  std::map<int, std::string> buffers;
  for (const LeafStep& step : plan.steps) {
    std::string chain = std::to_string(step.leaf);
    for (const int addend : step.addends) chain = sum_text(buffers.at(addend), chain);
    buffers[step.destination] = chain;
  }
  return buffers;
}

TEST(Accumulation, AddsInTreeOrderForEveryWorldSize) {
  for (int leaves = 1; leaves <= 40; ++leaves) {
    for (int world_size = 1; world_size <= leaves; ++world_size) {
      for (int rank = 0; rank < world_size; ++rank) {
        const comm::Subtree block = comm::block_of(GlobalRank{rank}, world_size, leaves);
        const AccumulationPlan plan = plan_accumulation(block, leaves);
        const auto buffers = run(plan);
        ASSERT_EQ(plan.steps.size(), static_cast<std::size_t>(block.leaves()));
        ASSERT_EQ(plan.sums.size(), plan.subtrees.size());
        for (std::size_t i = 0; i < plan.sums.size(); ++i) {
          EXPECT_EQ(buffers.at(plan.sums[i]), canonical(plan.subtrees[i]))
              << leaves << " leaves, rank " << rank << " of " << world_size;
        }
      }
    }
  }
}

TEST(Accumulation, HoldsAtMostOneBufferPerTreeLevel) {
  for (int leaves = 1; leaves <= 300; ++leaves) {
    const int levels = std::bit_width(static_cast<unsigned>(leaves - 1));
    const AccumulationPlan plan = plan_accumulation({0, leaves}, leaves);
    EXPECT_LE(plan.buffers, std::max(1, levels)) << leaves << " leaves";
  }
}

TEST(Accumulation, FourLeavesNeedTwoBuffers) {
  const AccumulationPlan plan = plan_accumulation({0, 4}, 4);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.steps[2].destination, 1);
  EXPECT_EQ(plan.steps[3].destination, 0);
  EXPECT_EQ(plan.steps[3].addends, (std::vector<int>{1, 0}));
}

}  // namespace
}  // namespace lrun::parallel
