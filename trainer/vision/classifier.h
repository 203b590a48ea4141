// Classifies images: a Network trained by cross entropy.
//
// Owns the steps of a Module; refuses to know the network's layers (small_networks.h). Metric:
// accuracy, exact counts.
#pragma once

#include <memory>

#include "trainer/loop/module.h"
#include "trainer/vision/small_networks.h"

namespace lrun::vision {

class Classifier final : public loop::Module {
 public:
  // `optimization.schedule.total_steps` is filled in by configure_optimizers.
  Classifier(std::shared_ptr<Network> network, loop::Optimization optimization);

  loop::TrainingOutput training_step(const data::Batch& leaf) override;
  loop::EvaluationOutput validation_step(const data::Batch& batch) override;
  std::vector<std::string> metric_names() const override { return {"accuracy"}; }
  loop::Optimization configure_optimizers(std::int64_t stepping_batches) override;

 private:
  std::shared_ptr<Network> network_;
  loop::Optimization optimization_;
};

}  // namespace lrun::vision
