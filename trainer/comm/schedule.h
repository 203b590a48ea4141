// Which pieces of a buffer travel between two ranks in one collective operation, in which order.
//
// Pure. Both ends compute the same list, so frames carry no header of their own: what `from` sends
// is what `to` expects. Called when an operation is issued.
//
//   reduce_scatter   terms of the receiver's shard, chunk by chunk
//   all_gather       finished values of the sender's shard, chunk by chunk
//   all_reduce       both, interleaved: a chunk is gathered as soon as it has been summed
//   all_reduce,small terms of the whole buffer to everybody: one hop instead of two
//   broadcast        finished values from the root
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/ids.h"
#include "trainer/comm/header.h"
#include "trainer/comm/range.h"

namespace lrun::comm {

// A frame is contiguous where it is received; bounds the memory that a peer's data occupies.
inline constexpr std::size_t kFrameBytesMax = 128 * 1024;
// Up to this size of the buffer one hop with more bytes beats two hops with fewer.
inline constexpr std::int64_t kSmallBytesMax = 16 * 1024;

struct Frame {
  // Terms: the range of each of the sender's subtree sums, one after another, to be added.
  // Values: the range of the whole buffer, to be copied.
  enum class Kind { Terms, Values };
  Kind kind = Kind::Values;
  Range range;
  // Terms: the receiver's chunk that they belong to. Values: the sender's chunk that must have been
  // summed before; −1 when they are there from the beginning.
  int chunk = -1;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// A collective operation as every rank sees it.
struct Collective {
  OperationKind kind = OperationKind::Barrier;
  std::int64_t elements = 0;
  int element_bytes = 1;
  std::vector<Range> shards = {};  // by rank; empty for broadcast and barrier
  std::vector<int> subtrees = {};  // by rank: how many terms it has; empty without a reduction
  GlobalRank root = {};            // of a broadcast
};

// An all_reduce in one hop: every rank sums the whole buffer as one chunk, after all its own terms
// have left (the result may lie in place).
bool is_one_hop(const Collective& collective);

// The chunks that `rank` sums, in order.
std::vector<Range> chunks_of(const Collective& collective, GlobalRank rank);

std::vector<Frame> frames_between(const Collective& collective, GlobalRank from, GlobalRank to);

}  // namespace lrun::comm
