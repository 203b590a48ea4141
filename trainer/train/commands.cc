#include "trainer/train/commands.h"

#include <torch/utils.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "trainer/loop/errors.h"
#include "trainer/loop/trainer.h"
#include "trainer/train/yaml_config.h"
#include "trainer/vision/classifier.h"
#include "trainer/vision/fashion_mnist.h"
#include "trainer/vision/small_networks.h"

namespace lrun::train {
namespace {

constexpr int kFailed = 1;
constexpr int kSignalBase = 128;

std::shared_ptr<loop::Module> make_module(const Config& config) {
  // Rank 0's weights reach all ranks anyway; the same seed makes them the same in every run.
  torch::manual_seed(static_cast<std::uint64_t>(config.seed));
  const Config::Model& model = config.model;
  std::shared_ptr<vision::Network> network =
      model.name == "cnn"
          ? vision::make_cnn(
                {.channels = model.channels, .hidden = model.hidden, .dropout = model.dropout})
          : vision::make_mlp({.hidden = model.hidden, .dropout = model.dropout});
  const loop::Optimization optimization{
      .adamw = {.beta1 = config.optimizer.beta1,
                .beta2 = config.optimizer.beta2,
                .epsilon = config.optimizer.eps,
                .weight_decay = config.optimizer.weight_decay},
      .schedule = {.kind = optim::schedule_kind(config.schedule.name),
                   .rate = config.optimizer.lr,
                   .warmup_steps = config.schedule.warmup_steps,
                   .floor = config.schedule.floor}};
  return std::make_shared<vision::Classifier>(std::move(network), optimization);
}

vision::FashionMnist make_data(const Config& config) {
  return vision::FashionMnist({.folder = config.data.path,
                               .leaf_size = static_cast<int>(config.data.leaf_size),
                               .eval_batch_size = static_cast<int>(config.data.eval_batch_size),
                               .validation_samples = config.data.validation_samples,
                               .prefetch_batches = static_cast<int>(config.data.prefetch_batches)});
}

loop::TrainerOptions trainer_options(const Config& config) {
  const Config::Trainer& trainer = config.trainer;
  return {.default_root_dir = trainer.default_root_dir,
          .max_epochs = trainer.max_epochs,
          .max_steps = trainer.max_steps,
          .limit_train_batches = trainer.limit_train_batches,
          .limit_val_batches = trainer.limit_val_batches,
          .limit_test_batches = trainer.limit_test_batches,
          .leaves = static_cast<int>(trainer.leaves),
          .zero_stage = config.strategy == "zero1" ? 1 : 0,
          .gradient_clip_val = trainer.gradient_clip_val,
          .log_every_n_steps = trainer.log_every_n_steps,
          .check_val_every_n_epoch = trainer.check_val_every_n_epoch,
          .seed = static_cast<std::uint64_t>(config.seed),
          .checkpoint = {.every_n_train_steps = config.checkpoint.every_n_train_steps,
                         .every_n_epochs = config.checkpoint.every_n_epochs,
                         .keep_last = static_cast<int>(config.checkpoint.keep_last)},
          .csv = config.logging.csv,
          .tensorboard = config.logging.tensorboard,
          .enable_progress_bar = trainer.enable_progress_bar,
          .config = flatten(config)};
}

std::string result_line(const std::string& part, const loop::EvaluationResult& result) {
  char text[160];
  const auto correct =
      static_cast<long long>(result.counts.contains("accuracy") ? result.counts.at("accuracy") : 0);
  const double accuracy =
      result.count > 0 ? 100.0 * static_cast<double>(correct) / static_cast<double>(result.count)
                       : 0;
  std::snprintf(text, sizeof text, "%s accuracy: %.2f %% (%lld of %lld), loss %.4f", part.c_str(),
                accuracy, correct, static_cast<long long>(result.count), result.loss);
  return text;
}

void print_weights(loop::Trainer& trainer) {
  trainer.display().message("weights sha256: " + trainer.weights_sha256() + " (step " +
                            std::to_string(trainer.optimizer_steps()) + ")");
}

// The configuration beside the checkpoints, so that a run folder explains itself.
void keep_config(const Config& config) {
  std::ofstream(std::filesystem::path(config.trainer.default_root_dir) / "config.yaml")
      << to_yaml(config);
}

void print_places(loop::Trainer& trainer, const Config& config) {
  const std::string root = config.trainer.default_root_dir + "/";
  std::string line = "run folder: " + root + " (checkpoints/, config.yaml";
  if (config.logging.csv) line += ", metrics.csv";
  if (config.logging.tensorboard) line += ", events.out.tfevents.lrun for TensorBoard";
  trainer.display().message(line + ")");
}

int fit(const Config& config, loop::Trainer& trainer, loop::Module& module, loop::DataModule& data,
        bool is_first) {
  const loop::FitResult result = trainer.fit(module, data);
  if (is_first) keep_config(config);
  const std::string reached =
      "step " + std::to_string(result.steps) + " (" + std::to_string(result.samples) + " samples)";
  if (result.reason == loop::StopReason::Signal) {
    trainer.display().message(
        "stopped by signal " + std::to_string(result.signal) + " at " + reached +
        (result.unsaved.empty() ? "; the same command goes on from here" : ""));
    return kSignalBase + result.signal;
  }
  trainer.display().message("trained to " + reached);
  trainer.display().message(result_line("test", trainer.test(module, data)));
  print_weights(trainer);
  print_places(trainer, config);
  if (result.unsaved.empty()) return 0;
  if (is_first) {
    std::fprintf(stderr, "lrun-train: the last checkpoint was not saved: %s\n",
                 result.unsaved.c_str());
  }
  return kFailed;
}

}  // namespace

int run_command(Command command, const Config& config, Place& place, loop::AgentLink& agent) {
  const std::shared_ptr<loop::Module> module = make_module(config);
  vision::FashionMnist data = make_data(config);
  loop::Trainer trainer(trainer_options(config),
                        {.worker = place.worker, .comm = *place.comm, .agent = agent});
  if (command == Command::Fit) {
    return fit(config, trainer, *module, data, place.worker.global_rank.value == 0);
  }
  const bool is_test = command == Command::Test;
  const loop::EvaluationResult result =
      is_test ? trainer.test(*module, data) : trainer.validate(*module, data);
  trainer.display().message(result_line(is_test ? "test" : "validation", result));
  print_weights(trainer);
  return 0;
}

}  // namespace lrun::train
