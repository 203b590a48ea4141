#include "trainer/parallel/accumulation.h"

#include <algorithm>
#include <set>

namespace lrun::parallel {
namespace {

// Buffers by index; the lowest free one is handed out, so that few are ever touched.
class BufferPool {
 public:
  int take() {
    if (free_.empty()) return size_++;
    const int lowest = *free_.begin();
    free_.erase(free_.begin());
    return lowest;
  }
  void give_back(int buffer) { free_.insert(buffer); }
  int size() const { return size_; }

 private:
  std::set<int> free_;
  int size_ = 0;
};

// How many nodes inside `subtree` end with `leaf`: each adds one waiting left sibling.
int nodes_ending_with(int leaf, comm::Subtree subtree) {
  int nodes = 0;
  while (subtree.leaves() > 1) {
    const int split = comm::split_of(subtree);
    if (leaf == subtree.last - 1) ++nodes;
    subtree =
        leaf < split ? comm::Subtree{subtree.first, split} : comm::Subtree{split, subtree.last};
  }
  return nodes;
}

}  // namespace

AccumulationPlan plan_accumulation(comm::Subtree block, int leaves) {
  AccumulationPlan plan;
  plan.subtrees = comm::complete_subtrees(block, leaves);
  BufferPool pool;
  for (const comm::Subtree subtree : plan.subtrees) {
    std::vector<int> waiting;  // sums of left siblings, outermost first
    for (int leaf = subtree.first; leaf < subtree.last; ++leaf) {
      LeafStep step{.leaf = leaf, .destination = 0, .addends = {}};
      for (int left = nodes_ending_with(leaf, subtree); left > 0; --left) {
        step.addends.push_back(waiting.back());
        waiting.pop_back();
      }
      step.destination = step.addends.empty() ? pool.take() : step.addends.back();
      for (const int buffer : step.addends) {
        if (buffer != step.destination) pool.give_back(buffer);
      }
      waiting.push_back(step.destination);
      plan.steps.push_back(std::move(step));
    }
    plan.sums.push_back(waiting.front());
  }
  plan.buffers = pool.size();
  return plan;
}

}  // namespace lrun::parallel
