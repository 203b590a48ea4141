// Data parallel training of one model over a Comm: gradients of leaves, summed in tree order, one
// optimizer step on flat shards.
//
// Owns the flat buffers (parameters, gradients, moments), the buckets and the step. Refuses to know
// data, schedules, files. Called by trainer/loop (steps) and trainer/checkpoint (owned state).
// Thread: the compute thread only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/optim/adamw.h"
#include "trainer/parallel/flat_layout.h"

namespace lrun::parallel {

struct Options {
  int leaves = 4;       // K; at least the world size, else std::invalid_argument
  int zero_stage = 0;   // 0: moments on every rank; 1: moments of the own shard only
  double max_norm = 0;  // clip the global L2 norm to this; 0: do not clip
  std::int64_t bucket_bytes = 4 << 20;
  std::uint64_t seed = 0;  // every leaf's random stream derives from it (seeds.h)
  optim::AdamWOptions adamw = {};
};

// What one optimizer step did. The same on every rank.
struct StepResult {
  double grad_norm = 0;     // L2, before clipping, fp64
  bool was_applied = true;  // false: the norm was not finite, nothing changed
  double loss_sum = 0;      // over all samples of the global batch
  std::int64_t count = 0;   // counted samples of the global batch
};

// A slice of the job's state that this rank owns: `values` are the fp32 elements
// [owned.begin, owned.end) of the logical flat vector.
struct OwnedState {
  std::string kind;  // "param", "exp_avg", "exp_avg_sq"
  at::Tensor* values = nullptr;
};

class DataParallel {
 public:
  // `parameters`: name and leaf tensor (fp32, CPU, requires_grad) in registration order; their
  // storage is replaced by views of one flat buffer. Rank 0's values are broadcast to all.
  // Throws std::runtime_error naming the first parameter whose name, shape or dtype (or the first
  // option that) differs between ranks; std::invalid_argument for leaves < world size, for options
  // out of range and for parameters of another kind.
  DataParallel(std::vector<std::pair<std::string, at::Tensor>> parameters, comm::Comm& comm,
               Options options);
  ~DataParallel();

  // The leaves this rank computes, in order.
  comm::Subtree block() const;

  // For each leaf of the block, in order: begin_leaf; forward; backward of the *sum* of the
  // samples' losses, once; end_leaf with that sum and the number of samples. begin_leaf seeds the
  // process-wide CPU generator for this leaf. Backward takes each gradient out of `grad()` as soon
  // as it is complete; a parameter that a leaf does not use counts as a gradient of zero. Throws
  // std::logic_error when called out of order, std::runtime_error naming the parameter whose
  // gradient arrives twice or does not fit.
  void begin_leaf(int leaf);
  void end_leaf(int leaf, double loss_sum, std::int64_t count);

  // After all leaves of the block. Reduces, divides by the count of the whole global batch, clips,
  // updates with this learning rate, gathers the parameters. A global batch without any counted
  // sample has no finite norm, so it changes nothing. Throws the Comm's errors; then the state is
  // that of the last completed step or unusable: reload it.
  StepResult step(double learning_rate);

  const FlatLayout& layout() const;
  comm::Range owned() const;
  // Valid until this object dies. The moments of `owned()` only, at every stage.
  std::vector<OwnedState> owned_state();
  std::int64_t optimizer_steps() const;
  // After the owned state was overwritten from a checkpoint: gathers what other ranks hold.
  void after_load(std::int64_t optimizer_steps);

  // SHA-256 of all parameters in layout order, in hexadecimal: the hash that lrun-train prints. Of
  // each parameter: its name, a space, its shape as `[64,32]`, a newline, its raw little-endian
  // fp32 values without padding. No communication.
  std::string weights_sha256() const;

  // Live bytes of flat buffers on this rank (parameters, gradients, moments). With P parameters, N
  // ranks and one leaf per rank that is 16·P for zero_stage 0 and 8·P + 8·P/N for 1; a rank that
  // adds n leaves of its own holds ⌈log2 n⌉ gradient buffers.
  std::int64_t buffer_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::parallel
