#include "trainer/vision/classifier.h"

#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <utility>

namespace lrun::vision {
namespace {

at::Tensor summed_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  namespace F = torch::nn::functional;
  return F::cross_entropy(logits, targets, F::CrossEntropyFuncOptions().reduction(torch::kSum));
}

}  // namespace

Classifier::Classifier(std::shared_ptr<Network> network, loop::Optimization optimization)
    : network_(register_module("network", std::move(network))),
      optimization_(std::move(optimization)) {}

loop::TrainingOutput Classifier::training_step(const data::Batch& leaf) {
  const auto logits = network_->forward(leaf.inputs);
  return {.loss_sum = summed_cross_entropy(logits, leaf.targets), .count = leaf.size()};
}

loop::EvaluationOutput Classifier::validation_step(const data::Batch& batch) {
  const auto logits = network_->forward(batch.inputs);
  const auto correct = logits.argmax(1).eq(batch.targets).sum().item<std::int64_t>();
  return {.loss_sum = summed_cross_entropy(logits, batch.targets).item<double>(),
          .count = batch.size(),
          .counts = {{"accuracy", correct}}};
}

loop::Optimization Classifier::configure_optimizers(std::int64_t stepping_batches) {
  loop::Optimization optimization = optimization_;
  // A run of no steps, as `lrun-train test` is, still has a valid schedule.
  optimization.schedule.total_steps = std::max<std::int64_t>(stepping_batches, 1);
  return optimization;
}

}  // namespace lrun::vision
