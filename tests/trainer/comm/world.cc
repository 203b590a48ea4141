#include "tests/trainer/comm/world.h"

#include <gtest/gtest.h>

#include <thread>

namespace lrun::comm {

std::string to_name(Transport transport) {
  switch (transport) {
    case Transport::SharedMemory:
      return "SharedMemory";
    case Transport::Tcp:
      return "Tcp";
    case Transport::Mixed:
      return "Mixed";
  }
  return "";
}

Comm::Options World::options_of(GlobalRank rank) const {
  // Mixed: neighbours share a node, so each rank has peers of both kinds from three ranks on.
  const int node = transport == Transport::Mixed ? rank.value / 2 : 0;
  return {.rank = rank,
          .world_size = size,
          .generation = {3, 7},
          .host = "127.0.0.1",
          .node = "node " + std::to_string(node),
          .use_shared_memory = transport != Transport::Tcp,
          .connect_deadline = std::chrono::seconds(60),
          .deadline = deadline};
}

std::vector<std::exception_ptr> World::try_run(const std::function<void(Comm&)>& program) const {
  MemoryBootstrap bootstrap;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        program(*Comm::connect(options_of(GlobalRank{rank}), &bootstrap));
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return errors;
}

void World::run(const std::function<void(Comm&)>& program) const {
  int rank = 0;
  for (const std::exception_ptr& error : try_run(program)) {
    EXPECT_EQ(sentence_of(error), "") << "rank " << rank;
    ++rank;
  }
}

std::string sentence_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

std::vector<float> leaf_values(int leaf, std::int64_t elements) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  const auto scale = static_cast<float>(1 << (leaf * 7 % 23));
  std::uint32_t state = 12345u + static_cast<std::uint32_t>(leaf);
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
  return values;
}

std::vector<float> tree_sum(Subtree node, std::int64_t elements) {
  if (node.leaves() == 1) return leaf_values(node.first, elements);
  int half = 1;
  while (half * 2 < node.leaves()) half *= 2;
  auto left = tree_sum({node.first, node.first + half}, elements);
  const auto right = tree_sum({node.first + half, node.last}, elements);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
  return left;
}

Terms::Terms(GlobalRank rank, int world_size, int leaves, std::int64_t elements) {
  const auto subtrees = complete_subtrees(block_of(rank, world_size, leaves), leaves);
  for (const Subtree& subtree : subtrees) values.push_back(tree_sum(subtree, elements));
  for (std::size_t i = 0; i < subtrees.size(); ++i) sums.push_back({subtrees[i], values[i]});
}

}  // namespace lrun::comm
