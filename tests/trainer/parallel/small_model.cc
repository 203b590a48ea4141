#include "tests/trainer/parallel/small_model.h"

#include <ATen/CPUGeneratorImpl.h>

#include "trainer/parallel/seeds.h"

namespace lrun::parallel {
namespace {

// Of its own, so that ranks that are threads do not draw from each other's stream.
at::Generator generator_of(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

void initialise(torch::nn::Module& model, std::uint64_t salt) {
  const at::NoGradGuard no_grad;
  at::Generator generator = generator_of(mix(salt));
  for (auto& parameter : model.parameters()) {
    parameter.copy_(at::randn(parameter.sizes(), generator, at::kFloat) * 0.1);
  }
}

}  // namespace

Batch batch_of(std::int64_t step, int leaf) {
  at::Generator generator = generator_of(leaf_seed(99, step, leaf));
  return {at::randn({kLeafSamples, 1, 12, 12}, generator, at::kFloat),
          at::randint(0, 10, {kLeafSamples}, generator, at::kLong)};
}

SmallModel::SmallModel(const SmallModelOptions& options, std::uint64_t salt) {
  conv_ = register_module("conv", torch::nn::Conv2d(1, 4, 3));
  norm_ = register_module("norm", torch::nn::LayerNorm(std::vector<std::int64_t>{400}));
  hidden_ = register_module("hidden", torch::nn::Linear(400, options.hidden));
  if (options.has_unused) unused_ = register_module("unused", torch::nn::Linear(30, 30));
  dropout_ = register_module("dropout", torch::nn::Dropout(options.dropout));
  out_ = register_module("out", torch::nn::Linear(options.hidden, 10));
  initialise(*this, salt);
}

at::Tensor SmallModel::forward(const at::Tensor& images) {
  const at::Tensor features = norm_(torch::relu(conv_(images)).flatten(1));
  return out_(dropout_(torch::relu(hidden_(features))));
}

at::Tensor SmallModel::loss_sum(const Batch& batch) {
  return torch::cross_entropy_loss(forward(batch.images), batch.labels, {}, at::Reduction::Sum);
}

std::vector<std::pair<std::string, at::Tensor>> named_parameters(const torch::nn::Module& model) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : model.named_parameters()) {
    parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

void compute_leaves(DataParallel& training, SmallModel& model, std::int64_t step) {
  for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
    const Batch batch = batch_of(step, leaf);
    training.begin_leaf(leaf);
    const at::Tensor loss = model.loss_sum(batch);
    loss.backward();
    training.end_leaf(leaf, loss.item<float>(), kLeafSamples);
  }
}

StepResult train(DataParallel& training, SmallModel& model, int steps, double learning_rate) {
  StepResult last;
  for (int step = 0; step < steps; ++step) {
    compute_leaves(training, model, step);
    last = training.step(learning_rate);
  }
  return last;
}

}  // namespace lrun::parallel
