// Buckets: contiguous parts of the flat vector that travel together, in the order in which backward
// completes them, and when each may leave.
//
// Pure. Filled in reverse registration order, on slot borders; the first is small so that
// communication starts early. Every rank has the same buckets and sends them in
// index order, so no rank's timing decides an order. Used by GradientReducer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/parallel/flat_layout.h"

namespace lrun::parallel {

inline constexpr std::int64_t kFirstBucketBytes = 1 << 20;

struct Bucket {
  comm::Range range;               // elements of the flat vector, padding included
  std::vector<std::size_t> slots;  // indices into FlatLayout::slots
};

// Bucket 0 holds the last parameters. A parameter larger than `bytes_max` is a bucket by itself.
std::vector<Bucket> make_buckets(const FlatLayout& layout, std::int64_t bytes_max);

// The part of each shard that lies in `range`, relative to its begin; empty parts included.
std::vector<comm::Range> shards_within(comm::Range range, const std::vector<comm::Range>& shards);

// Which buckets may leave while one leaf's backward delivers its gradients in any order.
class BucketGate {
 public:
  explicit BucketGate(const std::vector<Bucket>& buckets, std::size_t slots);
  void reset();
  // Slot `slot` is complete. Each slot once.
  void complete(std::size_t slot);
  // True, once for each bucket, when the next bucket in index order is complete.
  bool take_next();
  // The bucket that `take_next` last allowed is `released() − 1`.
  std::size_t released() const { return released_; }

 private:
  std::vector<std::size_t> bucket_of_;
  std::vector<std::size_t> slots_in_;
  std::vector<std::size_t> missing_;
  std::size_t released_ = 0;
};

}  // namespace lrun::parallel
