#include "trainer/loop/trainer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "trainer/checkpoint/agreement.h"
#include "trainer/loop/csv_logger.h"
#include "trainer/loop/errors.h"
#include "trainer/loop/evaluation.h"
#include "trainer/loop/model_state.h"
#include "trainer/loop/resume_check.h"
#include "trainer/loop/tensorboard_logger.h"
#include "trainer/parallel/determinism.h"

namespace lrun::loop {
namespace {

std::string spell(double value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

// As checkpoints record it. Nothing of it is state: rates are a function of the step.
std::map<std::string, std::string> describe(const Optimization& optimization) {
  const optim::Schedule& schedule = optimization.schedule;
  const optim::AdamWOptions& adamw = optimization.adamw;
  return {{"schedule.name", optim::to_string(schedule.kind)},
          {"schedule.rate", spell(schedule.rate)},
          {"schedule.warmup_steps", std::to_string(schedule.warmup_steps)},
          {"schedule.total_steps", std::to_string(schedule.total_steps)},
          {"schedule.floor", spell(schedule.floor)},
          {"schedule.cycles", spell(schedule.cycles)},
          {"adamw.beta1", spell(adamw.beta1)},
          {"adamw.beta2", spell(adamw.beta2)},
          {"adamw.epsilon", spell(adamw.epsilon)},
          {"adamw.weight_decay", spell(adamw.weight_decay)}};
}

std::vector<std::pair<std::string, at::Tensor>> parameters_of(Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter->requires_grad()) parameters.emplace_back(parameter.key(), parameter.value());
  }
  return parameters;
}

Optimization checked_optimization(Module& module, std::int64_t steps) {
  Optimization optimization = module.configure_optimizers(steps);
  try {
    optim::validate(optimization.schedule);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
  return optimization;
}

}  // namespace

Trainer::Trainer(TrainerOptions options, Place place)
    : options_(std::move(options)),
      place_(std::move(place)),
      display_({.is_silent = place_.comm.rank().value != 0,
                .has_progress = options_.enable_progress_bar}) {}

Trainer::~Trainer() = default;

FitResult Trainer::fit(Module& module, DataModule& data) {
  setup(data, Stage::Fit);
  if (data.train_data() == nullptr) throw UsageError("the data module has no training data");
  const data::Dataset& train = *data.train_data();
  const data::ElasticSampler sampler = make_sampler(data, train);
  const Optimization optimization = checked_optimization(module, total_steps(sampler));
  attach(module, optimization.adamw);
  RunCheckpoints checkpoints = make_checkpoints(module);
  checkpoints.check_folder();
  RunLoggers loggers = make_loggers(module);
  const checkpoint::TrainingState state =
      begin(checkpoints, loggers, fresh_state(data, train, optimization));
  const FitLoop::Options loop{.total_steps = total_steps(sampler),
                              .epochs = options_.max_epochs,
                              .ends_by_steps = options_.max_steps >= 0,
                              .log_every_n_steps = options_.log_every_n_steps,
                              .check_val_every_n_epoch = options_.check_val_every_n_epoch,
                              .prefetch_batches = data.prefetch_batches()};
  const auto validate_now = [&]() -> std::optional<EvaluationResult> {
    const data::Dataset* validation = data.validation_data();
    if (validation == nullptr) return std::nullopt;
    return run_evaluation(module, validation, data.eval_batch_size(), Stage::Validate);
  };
  FitLoop fit_loop(loop,
                   {.module = module,
                    .parallel = *parallel_,
                    .comm = place_.comm,
                    .train_data = train,
                    .validate = validate_now,
                    .checkpoints = checkpoints,
                    .loggers = loggers,
                    .agent = place_.agent,
                    .display = display_},
                   sampler, optimization.schedule, state);
  return fit_loop.run();
}

EvaluationResult Trainer::validate(Module& module, DataModule& data) {
  setup(data, Stage::Validate);
  load_weights(module);
  return run_evaluation(module, data.validation_data(), data.eval_batch_size(), Stage::Validate);
}

EvaluationResult Trainer::test(Module& module, DataModule& data) {
  setup(data, Stage::Test);
  load_weights(module);
  return run_evaluation(module, data.test_data(), data.eval_batch_size(), Stage::Test);
}

std::string Trainer::weights_sha256() const { return parallel_->weights_sha256(); }
std::int64_t Trainer::optimizer_steps() const { return parallel_->optimizer_steps(); }

// A data set that is missing on one node stops all of them, with the sentence of that node.
void Trainer::setup(DataModule& data, Stage stage) {
  std::string failure;
  try {
    if (place_.worker.local_rank.value == 0) data.prepare_data();
  } catch (const data::DatasetError& error) {
    failure = error.what();
  }
  failure =
      checkpoint::first_failure(place_.comm, failure);  // also: prepared before anyone goes on
  if (failure.empty()) {
    try {
      data.setup(stage);
    } catch (const data::DatasetError& error) {
      failure = error.what();
    }
    failure = checkpoint::first_failure(place_.comm, failure);
  }
  if (!failure.empty()) throw UsageError(failure);
}

void Trainer::attach(Module& module, const optim::AdamWOptions& adamw) {
  if (options_.leaves < place_.comm.world_size()) {
    throw UsageError("trainer.leaves is " + std::to_string(options_.leaves) +
                     "; accepted: at least the number of workers, " +
                     std::to_string(place_.comm.world_size()));
  }
  const std::string unsupported = unsupported_layer(module);
  if (!unsupported.empty()) throw UsageError(unsupported);
  parallel_ = std::make_unique<parallel::DataParallel>(
      parameters_of(module), place_.comm,
      parallel::Options{.leaves = options_.leaves,
                        .zero_stage = options_.zero_stage,
                        .max_norm = options_.gradient_clip_val,
                        .seed = options_.seed,
                        .adamw = adamw});
}

void Trainer::load_weights(Module& module) {
  if (parallel_) return;
  attach(module, {});
  RunCheckpoints checkpoints = make_checkpoints(module);
  if (checkpoints.load()) return;
  throw UsageError("there is no checkpoint in " + checkpoints.folder().string() +
                   "; train one with lrun-train fit, or set trainer.default_root_dir");
}

data::ElasticSampler Trainer::make_sampler(const DataModule& data,
                                           const data::Dataset& train) const {
  data::ElasticSampler::Options order{.seed = options_.seed,
                                      .samples = train.size(),
                                      .leaves = options_.leaves,
                                      .leaf_size = data.leaf_size()};
  const std::int64_t all = data::ElasticSampler(order).batches_per_epoch();
  order.batches_per_epoch = limited(options_.limit_train_batches, all);
  return data::ElasticSampler(order);
}

std::int64_t Trainer::total_steps(const data::ElasticSampler& sampler) const {
  if (sampler.options().batches_per_epoch == 0) return 0;
  const std::int64_t by_epochs = options_.max_epochs * sampler.batches_per_epoch();
  return options_.max_steps < 0 ? by_epochs : std::min(by_epochs, options_.max_steps);
}

RunCheckpoints Trainer::make_checkpoints(Module& module) {
  return RunCheckpoints(options_.default_root_dir / "checkpoints", options_.checkpoint,
                        place_.worker.generation,
                        {.parallel = *parallel_,
                         .module = module,
                         .comm = place_.comm,
                         .agent = place_.agent,
                         .display = display_});
}

RunLoggers Trainer::make_loggers(const Module& module) const {
  RunLoggers loggers;
  if (place_.comm.rank().value != 0) return loggers;
  std::vector<std::string> columns = {"train_loss", "grad_norm", "lr", "val_loss"};
  for (const std::string& name : module.metric_names()) columns.push_back("val_" + name);
  if (options_.csv) {
    loggers.add(std::make_unique<CsvLogger>(options_.default_root_dir / "metrics.csv", columns));
  }
  if (options_.tensorboard) {
    loggers.add(std::make_unique<TensorBoardLogger>(options_.default_root_dir));
  }
  return loggers;
}

checkpoint::TrainingState Trainer::fresh_state(const DataModule& data, const data::Dataset& train,
                                               const Optimization& optimization) const {
  checkpoint::TrainingState state;
  state.seed = options_.seed;
  state.leaves = options_.leaves;
  state.leaf_size = data.leaf_size();
  state.dataset = train.fingerprint();
  state.run_id = place_.worker.run_id;
  state.optimization = describe(optimization);
  state.environment = parallel::arithmetic_identity();
  state.config = options_.config;
  return state;
}

checkpoint::TrainingState Trainer::begin(RunCheckpoints& checkpoints, RunLoggers& loggers,
                                         const checkpoint::TrainingState& fresh) {
  const std::optional<checkpoint::TrainingState> saved = checkpoints.load();
  if (!saved) {
    loggers.start();
    const int workers = place_.comm.world_size();
    display_.message("training with " + std::to_string(workers) +
                     (workers == 1 ? " worker in " : " workers in ") +
                     options_.default_root_dir.string());
    return fresh;
  }
  const std::string conflict = resume_conflict(*saved, fresh);
  if (!conflict.empty()) throw UsageError(conflict);
  for (const std::string& line : resume_warnings(*saved, fresh)) display_.warning(line);
  loggers.resume(saved->loggers, [this](const std::string& line) { display_.warning(line); });
  display_.message("resumed at step " + std::to_string(saved->optimizer_steps) + " from " +
                   checkpoints.folder().string());
  checkpoint::TrainingState state = fresh;
  state.epoch = saved->epoch;
  state.consumed = saved->consumed;
  state.samples = saved->samples;
  state.optimizer_steps = saved->optimizer_steps;
  return state;
}

EvaluationResult Trainer::run_evaluation(Module& module, const data::Dataset* dataset,
                                         int batch_size, Stage stage) {
  if (dataset == nullptr) {
    throw UsageError(stage == Stage::Test ? "the data module has no test data"
                                          : "the data module has no validation data");
  }
  const bool was_training = module.is_training();
  module.eval();
  const EvaluationPlan plan{
      .batch_size = batch_size,
      .limit = stage == Stage::Test ? options_.limit_test_batches : options_.limit_val_batches};
  EvaluationResult result = evaluate(*dataset, plan, place_.comm, [&](const data::Batch& batch) {
    return stage == Stage::Test ? module.test_step(batch) : module.validation_step(batch);
  });
  module.train(was_training);
  return result;
}

}  // namespace lrun::loop
