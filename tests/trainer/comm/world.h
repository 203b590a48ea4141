// A whole world in one process: each rank is a thread. For tests of trainer/comm.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/comm/memory_bootstrap.h"

namespace lrun::comm {

enum class Transport { SharedMemory, Tcp, Mixed };
std::string to_name(Transport transport);

struct World {
  int size = 1;
  Transport transport = Transport::SharedMemory;
  std::chrono::milliseconds deadline = std::chrono::seconds(60);

  Comm::Options options_of(GlobalRank rank) const;

  // Connects every rank and calls `program` on a thread for each. Returns what each rank threw,
  // by rank; null where it returned.
  std::vector<std::exception_ptr> try_run(const std::function<void(Comm&)>& program) const;
  // The same; an exception of any rank fails the test.
  void run(const std::function<void(Comm&)>& program) const;
};

// "" for null.
std::string sentence_of(const std::exception_ptr& error);

// The values of a leaf of the global batch: magnitudes far apart, so that another order of
// additions gives other bits.
std::vector<float> leaf_values(int leaf, std::int64_t elements);

// The sum of leaves [a, b), word for word as the tree is defined.
std::vector<float> tree_sum(Subtree node, std::int64_t elements);

// The sums that `rank` computes and owns: storage and the spans over it.
struct Terms {
  Terms(GlobalRank rank, int world_size, int leaves, std::int64_t elements);
  std::vector<std::vector<float>> values;
  std::vector<SubtreeSum> sums;
};

}  // namespace lrun::comm
