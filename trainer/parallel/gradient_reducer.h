// Sends the subtree sums of this rank, bucket by bucket, while backward of the last leaf goes on.
//
// Owns the buckets, their order and the operations under way. Every rank issues the same operations
// in bucket order, whatever order its gradients arrive in. In place: what this rank receives
// overwrites the first subtree's sum. Refuses to know optimizers. Called by DataParallel.
// Thread: the compute thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/parallel/buckets.h"
#include "trainer/parallel/leaf_sums.h"

namespace lrun::parallel {

// Who holds the sum over all leaves afterwards.
enum class Reduction {
  EveryRank,  // all of it, on every rank (zero_stage 0)
  Owner,      // each rank its shard (zero_stage 1)
};

class GradientReducer {
 public:
  struct Plan {
    Reduction reduction = Reduction::EveryRank;
    int leaves = 1;  // of the whole global batch
    std::int64_t bucket_bytes = 0;
  };
  // All references outlive the reducer.
  GradientReducer(const FlatLayout& layout, LeafSums& sums, comm::Comm& comm, const Plan& plan);

  // Slot `slot` of every subtree sum is final. Issues the buckets that are complete now. Each slot
  // once between two calls of finish(). Throws the Comm's errors.
  void complete(std::size_t slot);
  // Waits for all buckets. Every slot must be complete.
  void finish();

 private:
  struct Sending {
    std::vector<comm::SubtreeSum> mine;
    std::vector<comm::Range> shards;
    comm::Handle handle;
  };
  void issue(const Bucket& bucket);

  LeafSums& sums_;
  comm::Comm& comm_;
  Plan plan_;
  std::vector<comm::Range> shards_;
  std::vector<Bucket> buckets_;
  BucketGate gate_;
  std::vector<Sending> under_way_;
};

}  // namespace lrun::parallel
