// Brings the leaves of one rank's block, global batch after global batch, ahead of the compute
// thread.
//
// Owns one loader thread and a bounded queue between it and the compute thread; refuses to know
// what happens to a batch. Called by trainer/loop. `next()` and the destructor: compute thread.
// A position is that of consumed batches, never of prefetched ones: it travels with each batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/comm/tree.h"
#include "trainer/data/dataset.h"
#include "trainer/data/elastic_sampler.h"

namespace lrun::data {

struct Leaf {
  int leaf = 0;                       // its index in the global batch
  std::vector<std::int64_t> samples;  // indices into the data set; empty at the end of an epoch
  Batch batch;                        // undefined tensors when there are no samples
};

// This rank's part of one global batch.
struct GlobalBatch {
  Position position;      // where it starts
  std::int64_t size = 0;  // samples of the whole global batch
  std::vector<Leaf> leaves;
};

class LeafLoader {
 public:
  struct Options {
    comm::Subtree block;  // leaves of this rank
    Position start;
    int prefetch = 2;  // batches in the queue; 0: loaded in next(), without a thread
  };
  // `dataset` must outlive the loader.
  LeafLoader(const Dataset& dataset, const ElasticSampler& sampler, Options options);
  ~LeafLoader();

  // The next batch, epoch after epoch, without end. Throws what Dataset::batch threw.
  GlobalBatch next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::data
