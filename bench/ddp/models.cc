#include "bench/ddp/models.h"

#include <stdexcept>

namespace lrun::bench {
namespace {

namespace nn = torch::nn;

nn::Sequential cnn() {
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

nn::Sequential mlp(std::int64_t width) {
  nn::Sequential layers;
  for (int i = 0; i < 8; ++i) {
    if (i > 0) layers->push_back(nn::ReLU());
    layers->push_back(nn::Linear(width, width));
  }
  return layers;
}

nn::TransformerEncoder encoder() {
  const auto layer = nn::TransformerEncoderLayerOptions(256, 8).dim_feedforward(1024).dropout(0);
  return nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 2));
}

at::Tensor squared_error(const at::Tensor& output, const at::Tensor& target) {
  return torch::mse_loss(output, target, at::Reduction::Sum);
}

Workload cnn_workload(std::int64_t samples) {
  auto model = cnn();
  const at::Tensor images = at::randn({samples, 1, 28, 28});
  const at::Tensor labels = at::randint(10, {samples}, at::kLong);
  auto loss = [model, images, labels]() mutable {
    return torch::cross_entropy_loss(model->forward(images), labels, {}, at::Reduction::Sum);
  };
  return {model.ptr(), std::move(loss), samples};
}

Workload mlp_workload(std::int64_t samples) {
  auto model = mlp(1024);
  const at::Tensor input = at::randn({samples, 1024});
  const at::Tensor target = at::randn({samples, 1024});
  auto loss = [model, input, target]() mutable {
    return squared_error(model->forward(input), target);
  };
  return {model.ptr(), std::move(loss), samples};
}

Workload encoder_workload(std::int64_t samples) {
  auto model = encoder();
  const at::Tensor input = at::randn({64, samples, 256});  // sequence, batch, width
  const at::Tensor target = at::randn({64, samples, 256});
  auto loss = [model, input, target]() mutable {
    return squared_error(model->forward(input), target);
  };
  return {model.ptr(), std::move(loss), samples};
}

}  // namespace

Workload make_workload(const std::string& name, int leaves_per_rank) {
  torch::manual_seed(0);
  if (name == "cnn") return cnn_workload(64 / leaves_per_rank);
  if (name == "mlp") return mlp_workload(64 / leaves_per_rank);
  if (name == "encoder") return encoder_workload(16 / leaves_per_rank);
  throw std::invalid_argument("unknown model '" + name + "': use cnn, mlp or encoder");
}

}  // namespace lrun::bench
