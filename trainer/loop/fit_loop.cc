#include "trainer/loop/fit_loop.h"

#include <ATen/Functions.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "trainer/loop/errors.h"
#include "trainer/loop/stop_wish.h"

namespace lrun::loop {
namespace {

Instant now() { return std::chrono::steady_clock::now(); }

double mean_loss(const parallel::StepResult& result) {
  return result.count > 0 ? result.loss_sum / static_cast<double>(result.count) : 0;
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * fraction);
  return text;
}

std::string validation_line(std::int64_t epoch, std::int64_t epochs,
                            const EvaluationResult& result) {
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.4f", result.loss);
  std::string line = "epoch " + std::to_string(epoch) + "/" + std::to_string(epochs) +
                     " validated: val_loss " + loss;
  for (const auto& [name, value] : result.metrics) line += ", val_" + name + " " + percent(value);
  return line;
}

}  // namespace

FitLoop::FitLoop(Options options, Parts parts, const data::ElasticSampler& sampler,
                 optim::Schedule schedule, checkpoint::TrainingState state)
    : options_(options),
      parts_(std::move(parts)),
      sampler_(sampler),
      schedule_(std::move(schedule)),
      state_(std::move(state)),
      position_{.epoch = state_.epoch, .consumed = state_.consumed} {}

FitResult FitLoop::run() {
  parts_.module.on_fit_start();
  if (!is_finished()) {
    loader_.emplace(parts_.train_data, sampler_,
                    data::LeafLoader::Options{.block = parts_.parallel.block(),
                                              .start = position_,
                                              .prefetch = options_.prefetch_batches});
  }
  int signal = 0;
  while (!is_finished() && signal == 0) {
    if (position_.consumed == 0) parts_.module.on_train_epoch_start(position_.epoch);
    const Step step = train_step();
    after_step(step);
    const StopWish wish = agree_on_stop(parts_.comm, parts_.agent);
    const bool is_due =
        parts_.checkpoints.is_due(state_.optimizer_steps, position_.epoch, step.epoch_ended);
    if (is_due || wish.is_wanted() || is_finished()) save();
    signal = wish.signal;
    if (wish.is_wanted() && !wish.is_own && !is_finished()) await_own_signal(parts_.agent);
  }
  parts_.module.on_fit_end();
  return result(is_finished() ? 0 : signal);
}

FitLoop::Step FitLoop::train_step() {
  const data::GlobalBatch batch = loader_->next();
  TORCH_CHECK(batch.position == position_, "the loader is not at the position of the run");
  parts_.module.train();
  for (const data::Leaf& leaf : batch.leaves) compute_leaf(leaf);
  Step step;
  step.learning_rate = optim::learning_rate(schedule_, state_.optimizer_steps);
  step.result = parts_.parallel.step(step.learning_rate);
  if (!step.result.was_applied) {
    throw NotFinite(
        "the gradient's norm is not finite at step " + std::to_string(state_.optimizer_steps + 1) +
        " (epoch " + std::to_string(position_.epoch) + ", samples " +
        std::to_string(position_.consumed) + " to " +
        std::to_string(position_.consumed + batch.size) +
        " of its order); the weights are those of the step before: lower optimizer.lr or "
        "set trainer.gradient_clip_val");
  }
  position_ = sampler_.after(position_);
  step.epoch_ended = position_.consumed == 0;
  ++state_.optimizer_steps;
  state_.samples += batch.size;
  state_.epoch = position_.epoch;
  state_.consumed = position_.consumed;
  return step;
}

void FitLoop::compute_leaf(const data::Leaf& leaf) {
  parts_.parallel.begin_leaf(leaf.leaf);
  if (leaf.samples.empty()) {
    parts_.parallel.end_leaf(leaf.leaf, 0, 0);
    return;
  }
  const TrainingOutput output = parts_.module.training_step(leaf.batch);
  const auto loss = output.loss_sum.item<double>();
  output.loss_sum.backward();
  parts_.parallel.end_leaf(leaf.leaf, loss, output.count);
}

void FitLoop::after_step(const Step& step) {
  const bool is_logged = state_.optimizer_steps % options_.log_every_n_steps == 0;
  parts_.module.on_train_batch_end(state_.optimizer_steps, step.result);
  show(step, is_logged);
  if (is_logged) {
    // The epoch that the step belonged to.
    const std::int64_t epoch = position_.epoch - (step.epoch_ended ? 1 : 0);
    parts_.loggers.log({.epoch = epoch,
                        .step = state_.optimizer_steps,
                        .values = {{"train_loss", mean_loss(step.result)},
                                   {"grad_norm", step.result.grad_norm},
                                   {"lr", step.learning_rate}},
                        .timings = {{"samples_per_second", throughput_.samples_per_second()}}});
  }
  if (step.epoch_ended) end_epoch();
}

void FitLoop::show(const Step& step, bool is_logged) {
  const Instant at = now();
  throughput_.add(at, state_.samples);
  const double rate = throughput_.samples_per_second();
  parts_.agent.progress(at, state_.optimizer_steps, state_.samples, rate, is_logged);
  const std::int64_t steps_left = options_.total_steps - state_.optimizer_steps;
  const double samples_per_step =
      static_cast<double>(state_.samples) / static_cast<double>(state_.optimizer_steps);
  parts_.display.progress(
      at,
      {.epoch = position_.epoch - (step.epoch_ended ? 1 : 0),
       .epochs = options_.epochs,
       .step = state_.optimizer_steps,
       .steps = options_.total_steps,
       .loss = mean_loss(step.result),
       .samples_per_second = rate,
       .seconds_left = rate > 0 ? static_cast<double>(steps_left) * samples_per_step / rate : 0});
}

void FitLoop::end_epoch() {
  const std::int64_t epochs_done = position_.epoch;
  if (epochs_done % options_.check_val_every_n_epoch == 0) {
    if (const std::optional<EvaluationResult> validated = parts_.validate()) {
      LogRow row{.epoch = epochs_done - 1,
                 .step = state_.optimizer_steps,
                 .values = {{"val_loss", validated->loss}},
                 .timings = {}};
      for (const auto& [name, value] : validated->metrics)
        row.values.emplace_back("val_" + name, value);
      parts_.loggers.log(row);
      parts_.module.on_validation_end(state_.optimizer_steps, *validated);
      parts_.display.message(validation_line(epochs_done, options_.epochs, *validated));
    }
  }
  parts_.module.on_train_epoch_end(epochs_done - 1);
}

void FitLoop::save() {
  if (parts_.checkpoints.last_saved_step() == state_.optimizer_steps) return;
  // First the logs become durable, then the checkpoint that counts on them.
  state_.loggers = parts_.loggers.positions();
  parts_.checkpoints.save(state_);
}

FitResult FitLoop::result(int signal) const {
  const StopReason done = options_.ends_by_steps ? StopReason::MaxSteps : StopReason::MaxEpochs;
  return {.reason = signal != 0 ? StopReason::Signal : done,
          .signal = signal,
          .steps = state_.optimizer_steps,
          .samples = state_.samples,
          .position = position_,
          .unsaved = parts_.checkpoints.last_error()};
}

}  // namespace lrun::loop
