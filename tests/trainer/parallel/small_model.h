// A small model and its batches for tests: convolution, layer norm, two linear layers; the batch of
// a leaf is a pure function of (step, leaf).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/data_parallel.h"

namespace lrun::parallel {

inline constexpr int kLeafSamples = 6;

struct Batch {
  at::Tensor images;  // fp32 [kLeafSamples, 1, 12, 12]
  at::Tensor labels;  // int64 [kLeafSamples]
};
Batch batch_of(std::int64_t step, int leaf);

struct SmallModelOptions {
  double dropout = 0;
  bool has_unused = false;  // registers a layer that forward never uses
  std::int64_t hidden = 48;
};

class SmallModel : public torch::nn::Module {
 public:
  // Every `salt` gives other initial values.
  explicit SmallModel(const SmallModelOptions& options = {}, std::uint64_t salt = 0);
  at::Tensor forward(const at::Tensor& images);
  // Σ of the samples' cross entropies.
  at::Tensor loss_sum(const Batch& batch);

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear hidden_{nullptr};
  torch::nn::Linear unused_{nullptr};
  torch::nn::Dropout dropout_{nullptr};
  torch::nn::Linear out_{nullptr};
};

std::vector<std::pair<std::string, at::Tensor>> named_parameters(const torch::nn::Module& model);

// Forward and backward of every leaf of this rank's block.
void compute_leaves(DataParallel& training, SmallModel& model, std::int64_t step);

// All steps: compute_leaves and step(learning_rate). Returns the last result.
StepResult train(DataParallel& training, SmallModel& model, int steps, double learning_rate);

}  // namespace lrun::parallel
