#include "tests/trainer/loop/small_run.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <set>
#include <stdexcept>

#include "tests/trainer/parallel/worlds.h"
#include "trainer/parallel/determinism.h"

namespace lrun::loop {
namespace {

constexpr std::int64_t kInputs = 12;
constexpr std::int64_t kClasses = 3;

class Dots final : public data::Dataset {
 public:
  explicit Dots(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::string fingerprint() const override { return "dots " + std::to_string(size_); }
  data::Batch batch(std::span<const std::int64_t> samples) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    data::Batch batch{.inputs = torch::zeros({count, kInputs}),
                      .targets = torch::zeros({count}, torch::kLong)};
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t sample = samples[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < kInputs; ++i) {
        const auto noise =
            data::mix(9, static_cast<std::uint64_t>(sample), static_cast<std::uint64_t>(i));
        batch.inputs[row][i] = static_cast<float>(noise % 100) / 100 +
                               (i % kClasses == sample % kClasses ? 1.0F : 0.0F);
      }
      batch.targets[row] = sample % kClasses;
    }
    return batch;
  }

 private:
  std::int64_t size_;
};

class SmallData final : public DataModule {
 public:
  explicit SmallData(std::int64_t samples) : train_(samples), held_out_(31) {}
  void setup(Stage) override {}
  const data::Dataset* train_data() override { return &train_; }
  const data::Dataset* validation_data() override { return &held_out_; }
  const data::Dataset* test_data() override { return &held_out_; }
  int leaf_size() const override { return 2; }
  int eval_batch_size() const override { return 4; }

 private:
  Dots train_;
  Dots held_out_;
};

// With dropout, so that random streams count, and a buffer that must be restored.
class SmallModule final : public Module {
 public:
  explicit SmallModule(const SmallRun& run) : run_(run) {
    first_ = register_module("first", torch::nn::Linear(kInputs, 40));
    drop_ = register_module("drop", torch::nn::Dropout(0.3));
    second_ = register_module("second", torch::nn::Linear(40, kClasses));
    steps_seen_ = register_buffer("steps_seen", torch::zeros({1}, torch::kLong));
  }
  TrainingOutput training_step(const data::Batch& leaf) override {
    return {.loss_sum = loss(forward(leaf.inputs), leaf.targets), .count = leaf.size()};
  }
  EvaluationOutput validation_step(const data::Batch& batch) override {
    const at::Tensor logits = forward(batch.inputs);
    return {
        .loss_sum = loss(logits, batch.targets).item<double>(),
        .count = batch.size(),
        .counts = {{"accuracy", logits.argmax(1).eq(batch.targets).sum().item<std::int64_t>()}}};
  }
  std::vector<std::string> metric_names() const override { return {"accuracy"}; }
  Optimization configure_optimizers(std::int64_t steps) override {
    return {.adamw = {},
            .schedule = {.kind = optim::ScheduleKind::Cosine,
                         .rate = run_.learning_rate,
                         .warmup_steps = 2,
                         .total_steps = std::max<std::int64_t>(steps, 3)}};
  }
  void on_train_batch_end(std::int64_t step, const parallel::StepResult&) override {
    steps_seen_ += 1;
    TORCH_CHECK(steps_seen_.item<std::int64_t>() == step, "the buffer was not restored");
    if (run_.after_step) run_.after_step(step);
  }

 private:
  at::Tensor forward(const at::Tensor& inputs) {
    return second_->forward(drop_->forward(torch::relu(first_->forward(inputs))));
  }
  static at::Tensor loss(const at::Tensor& logits, const at::Tensor& targets) {
    namespace F = torch::nn::functional;
    return F::cross_entropy(logits, targets, F::CrossEntropyFuncOptions().reduction(torch::kSum));
  }

  const SmallRun& run_;
  torch::nn::Linear first_ = nullptr;
  torch::nn::Dropout drop_ = nullptr;
  torch::nn::Linear second_ = nullptr;
  at::Tensor steps_seen_;
};

}  // namespace

SmallResult run_small(comm::Comm& comm, const SmallRun& run) {
  parallel::pin_arithmetic();
  torch::manual_seed(run.seed);
  AgentLink agent(nullptr, comm);
  WorkerEnv worker = alone();
  worker.global_rank = comm.rank();
  worker.world_size = comm.world_size();
  Trainer trainer({.default_root_dir = run.folder,
                   .max_epochs = run.max_epochs,
                   .leaves = 12,
                   .zero_stage = run.zero_stage,
                   .gradient_clip_val = 1.0,
                   .log_every_n_steps = 2,
                   .seed = run.seed,
                   .checkpoint = {.every_n_train_steps = 4, .every_n_epochs = 1},
                   .enable_progress_bar = false,
                   .config = {}},
                  {.worker = worker, .comm = comm, .agent = agent});
  SmallModule module(run);
  SmallData data(run.samples);
  SmallResult result{.fit = trainer.fit(module, data), .weights = {}, .correct = 0};
  if (result.fit.reason != StopReason::Signal) {
    result.correct = trainer.test(module, data).counts.at("accuracy");
  }
  result.weights = trainer.weights_sha256();
  return result;
}

std::string weights_of_world(int world_size, const SmallRun& run) {
  const std::vector<std::string> texts = parallel::run_processes(world_size, [&](comm::Comm& comm) {
    const SmallResult result = run_small(comm, run);
    return result.weights + " " + std::to_string(result.correct);
  });
  if (std::set<std::string>(texts.begin(), texts.end()).size() != 1) {
    throw std::runtime_error("ranks ended with different weights");
  }
  return texts.front();
}

}  // namespace lrun::loop
