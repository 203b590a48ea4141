#include "trainer/comm/tree.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace lrun::comm {
namespace {

void collect(Subtree node, Subtree block, std::vector<Subtree>& found) {
  if (node.last <= block.first || block.last <= node.first) return;
  if (block.first <= node.first && node.last <= block.last) {
    found.push_back(node);
    return;
  }
  const int middle = split_of(node);
  collect({node.first, middle}, block, found);
  collect({middle, node.last}, block, found);
}

}  // namespace

Subtree block_of(GlobalRank rank, int world_size, int leaves) {
  const auto border = [&](int r) {
    return static_cast<int>(std::int64_t{leaves} * r / world_size);
  };
  return {border(rank.value), border(rank.value + 1)};
}

int split_of(Subtree node) {
  if (node.leaves() < 2) {
    throw std::invalid_argument("a node of " + std::to_string(node.leaves()) +
                                " leaves cannot be split; it needs at least 2");
  }
  // The largest power of two below the number of leaves.
  return node.first + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.leaves() - 1)));
}

std::vector<Subtree> complete_subtrees(Subtree block, int leaves) {
  std::vector<Subtree> found;
  if (block.leaves() > 0) collect({0, leaves}, block, found);
  return found;
}

}  // namespace lrun::comm
