// Two small networks for grey images of 28 × 28.
//
// Weights are drawn from LibTorch's default generator: seed it before, and every rank starts alike.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <memory>

namespace lrun::vision {

// Layers one after the other: [B, 1, 28, 28] → [B, classes].
class Network final : public torch::nn::Module {
 public:
  explicit Network(torch::nn::Sequential layers);
  at::Tensor forward(const at::Tensor& images) { return layers_->forward(images); }

 private:
  torch::nn::Sequential layers_;
};

struct CnnOptions {
  std::int64_t channels = 8;  // of the first convolution; the second has twice as many
  std::int64_t hidden = 64;
  std::int64_t classes = 10;
  double dropout = 0;
};
// conv 3×3 → relu → pool 2 → conv 3×3 → relu → pool 2 → linear → relu → dropout → linear.
std::shared_ptr<Network> make_cnn(const CnnOptions& options);

struct MlpOptions {
  std::int64_t hidden = 64;
  std::int64_t classes = 10;
  double dropout = 0;
};
// flatten → linear → relu → dropout → linear.
std::shared_ptr<Network> make_mlp(const MlpOptions& options);

}  // namespace lrun::vision
