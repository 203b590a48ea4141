// The training loop: step after step until an end is reached or a stop is agreed.
//
// Owns the position in the data and the counters; everything else is lent to it. Called by Trainer.
// Compute thread, all ranks together. One step border:
//
//   leaves, step → log → [epoch over: validate] → stop agreed? → [due, or last: save]
//
// A checkpoint is saved after everything that belongs to its step, so that a resumed run repeats
// nothing and misses nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "trainer/checkpoint/manifest.h"
#include "trainer/data/elastic_sampler.h"
#include "trainer/data/leaf_loader.h"
#include "trainer/loop/agent_link.h"
#include "trainer/loop/display.h"
#include "trainer/loop/module.h"
#include "trainer/loop/run_checkpoints.h"
#include "trainer/loop/run_loggers.h"
#include "trainer/loop/throughput.h"
#include "trainer/parallel/data_parallel.h"

namespace lrun::loop {

enum class StopReason { MaxEpochs, MaxSteps, Signal };

struct FitResult {
  StopReason reason = StopReason::MaxEpochs;
  int signal = 0;  // of StopReason::Signal
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  data::Position position;
  std::string unsaved;  // why the last checkpoint could not be saved; empty: it was
};

class FitLoop {
 public:
  struct Options {
    std::int64_t total_steps = 0;
    std::int64_t epochs = 0;  // for the display
    bool ends_by_steps = false;
    std::int64_t log_every_n_steps = 50;
    std::int64_t check_val_every_n_epoch = 1;
    int prefetch_batches = 2;
  };
  struct Parts {
    Module& module;
    parallel::DataParallel& parallel;
    comm::Comm& comm;
    const data::Dataset& train_data;
    // Validates now; nothing when there is no validation data.
    std::function<std::optional<EvaluationResult>()> validate;
    RunCheckpoints& checkpoints;
    RunLoggers& loggers;
    AgentLink& agent;
    Display& display;
  };
  // `state`: where to begin (a fresh one or that of a checkpoint), and what every checkpoint
  // repeats.
  FitLoop(Options options, Parts parts, const data::ElasticSampler& sampler,
          optim::Schedule schedule, checkpoint::TrainingState state);

  // Throws the Comm's errors, NotFinite, and what Dataset::batch and the module throw.
  FitResult run();

 private:
  struct Step {
    parallel::StepResult result;
    double learning_rate = 0;
    bool epoch_ended = false;
  };
  Step train_step();
  void compute_leaf(const data::Leaf& leaf);
  void after_step(const Step& step);
  void show(const Step& step, bool is_logged);
  void end_epoch();
  void save();
  bool is_finished() const { return state_.optimizer_steps >= options_.total_steps; }
  FitResult result(int signal) const;

  Options options_;
  Parts parts_;
  data::ElasticSampler sampler_;
  optim::Schedule schedule_;
  checkpoint::TrainingState state_;
  data::Position position_;
  std::optional<data::LeafLoader> loader_;
  Throughput throughput_;
};

}  // namespace lrun::loop
