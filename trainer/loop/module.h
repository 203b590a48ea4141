// What a user program gives the Trainer to train: a model with its steps.
//
// Owns nothing; the words are Lightning's. Derive from Module, register parameters and submodules
// in the constructor as in any torch::nn::Module, and override the steps. Every member is called on
// the compute thread. Hooks run on every rank in the order listed; they must not communicate.
//
//   on_fit_start
//     on_train_epoch_start
//       training_step × leaves, on_train_batch_end      per optimizer step
//     validation_step × batches, on_validation_end      per check
//     on_train_epoch_end
//   on_fit_end
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/schedules.h"
#include "trainer/parallel/data_parallel.h"

namespace lrun::loop {

// Of one leaf. The gradient of a step is that of the *sum* of all samples' losses, divided once by
// the number of samples of the whole global batch, so uneven leaves weigh right.
struct TrainingOutput {
  at::Tensor loss_sum;     // scalar, requires grad
  std::int64_t count = 0;  // samples (or tokens) in the sum
};

// Of one batch. Integers are summed exactly over all batches of all ranks.
struct EvaluationOutput {
  double loss_sum = 0;
  std::int64_t count = 0;
  std::map<std::string, std::int64_t>
      counts;  // "accuracy" → correct ones; reported as count / total
};

// Merged over the whole data set; the same on every rank, for every world size.
struct EvaluationResult {
  double loss = 0;  // mean
  std::int64_t count = 0;
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, double> metrics;  // counts / count
};

struct Optimization {
  optim::AdamWOptions adamw;
  optim::Schedule schedule;
};

class Module : public torch::nn::Module {
 public:
  // Forward of one leaf. Never called without samples.
  virtual TrainingOutput training_step(const data::Batch& leaf) = 0;
  // In eval mode, without gradients. The names in `counts` are those of metric_names().
  virtual EvaluationOutput validation_step(const data::Batch& batch) = 0;
  virtual EvaluationOutput test_step(const data::Batch& batch) { return validation_step(batch); }
  virtual std::vector<std::string> metric_names() const { return {}; }
  // `stepping_batches`: optimizer steps of the whole run.
  virtual Optimization configure_optimizers(std::int64_t stepping_batches) = 0;

  virtual void on_fit_start() {}
  virtual void on_train_epoch_start(std::int64_t /*epoch*/) {}
  virtual void on_train_batch_end(std::int64_t /*step*/, const parallel::StepResult& /*result*/) {}
  virtual void on_validation_end(std::int64_t /*step*/, const EvaluationResult& /*result*/) {}
  virtual void on_train_epoch_end(std::int64_t /*epoch*/) {}
  virtual void on_fit_end() {}
};

}  // namespace lrun::loop
