// AdamW on a flat shard (Loshchilov & Hutter 2019):
//
//   p ← p·(1 − lr·λ);  m ← β1·m + (1 − β1)·g;  v ← β2·v + (1 − β2)·g²
//   p ← p − lr / (1 − β1^t) · m / (√v / √(1 − β2^t) + ε)
//
// Owns the moments and nothing else; refuses to know parameters' names, ranks, learning-rate
// schedules. Elementwise, so its bits do not depend on where a shard begins or ends. Called by
// DataParallel. Thread: the compute thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lrun::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// Throws std::invalid_argument: one line that names the value and what is accepted.
void validate(const AdamWOptions& options);

class AdamW {
 public:
  // Zero moments for `elements` parameters.
  AdamW(std::int64_t elements, const AdamWOptions& options);

  // One update, the `t`-th counted from 1. `parameters`, `gradients`: fp32, one-dimensional,
  // contiguous, `elements` long. The gradient used is gradients / divisor; `gradients` is
  // overwritten with it.
  void update(at::Tensor& parameters, at::Tensor& gradients, double learning_rate, double divisor,
              std::int64_t t);

  // fp32, `elements` long. May be overwritten between updates (a checkpoint is loaded).
  at::Tensor& exp_avg() { return exp_avg_; }
  at::Tensor& exp_avg_sq() { return exp_avg_sq_; }

 private:
  AdamWOptions options_;
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
  at::Tensor step_;     // fp32 scalar, as the kernel wants it; exact up to 2^24 steps
  at::Tensor divisor_;  // fp32 scalar
};

}  // namespace lrun::optim
