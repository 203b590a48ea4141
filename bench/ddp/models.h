// The models that data-parallel training is timed with, and their batches of fixed random numbers.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>

namespace lrun::bench {

struct Workload {
  std::shared_ptr<torch::nn::Module> model;
  // Forward of a batch of one leaf: Σ of its losses. The batch is the same in every step.
  std::function<at::Tensor()> loss_sum;
  std::int64_t leaf_samples = 0;
};

// `name`: "cnn" (MNIST, 1.2 M parameters, 64 samples a rank), "mlp" (8 × Linear(1024), 8.4 M, 64),
// "encoder" (2 layers, width 256, sequence 64, 1.6 M, 16). The samples of a rank are divided into
// `leaves_per_rank` leaves. Throws std::invalid_argument for another name.
Workload make_workload(const std::string& name, int leaves_per_rank);

}  // namespace lrun::bench
