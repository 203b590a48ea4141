// Trains, validates and tests a Module on a DataModule: what a user program calls.
//
// Owns the set-up of a run: data sets, data parallelism, checkpoints, logs, display, and the resume
// from what an earlier life of the run left in its folder. Refuses to know models and configuration
// files. Compute thread, all ranks together. The same weights result from every world size, with
// and without interruptions (docs/trainer.md says when not).
//
//   RUN/checkpoints/step_N/   RUN/metrics.csv   RUN/events.out.tfevents.lrun
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "proto/worker_env.h"
#include "trainer/loop/agent_link.h"
#include "trainer/loop/batch_limit.h"
#include "trainer/loop/data_module.h"
#include "trainer/loop/display.h"
#include "trainer/loop/fit_loop.h"
#include "trainer/loop/module.h"
#include "trainer/loop/run_checkpoints.h"

namespace lrun::loop {

struct TrainerOptions {
  std::filesystem::path default_root_dir = "lrun-run";  // RUN; the same folder on every node
  std::int64_t max_epochs = 1;
  std::int64_t max_steps = -1;  // optimizer steps; −1: no limit
  BatchLimit limit_train_batches = {};
  BatchLimit limit_val_batches = {};
  BatchLimit limit_test_batches = {};
  int leaves = 12;  // K, at least the world size
  int zero_stage = 0;
  double gradient_clip_val = 0;
  std::int64_t log_every_n_steps = 50;
  std::int64_t check_val_every_n_epoch = 1;
  std::uint64_t seed = 0;
  CheckpointOptions checkpoint = {};
  bool csv = true;
  bool tensorboard = true;
  bool enable_progress_bar = true;
  std::map<std::string, std::string> config = {};  // saved in checkpoints
};

class Trainer {
 public:
  struct Place {
    WorkerEnv worker;
    comm::Comm& comm;
    AgentLink& agent;
  };
  Trainer(TrainerOptions options, Place place);
  ~Trainer();

  // Goes on from the newest good checkpoint in RUN, if there is one. Throws UsageError before the
  // first step; then what FitLoop::run throws.
  FitResult fit(Module& module, DataModule& data);

  // With the weights of a fit before, else of the newest good checkpoint (UsageError if there is
  // none). Results are the same on every rank.
  EvaluationResult validate(Module& module, DataModule& data);
  EvaluationResult test(Module& module, DataModule& data);

  // After one of the above.
  std::string weights_sha256() const;
  std::int64_t optimizer_steps() const;
  Display& display() { return display_; }

 private:
  void setup(DataModule& data, Stage stage);
  void attach(Module& module, const optim::AdamWOptions& adamw);
  void load_weights(Module& module);
  data::ElasticSampler make_sampler(const DataModule& data, const data::Dataset& train) const;
  std::int64_t total_steps(const data::ElasticSampler& sampler) const;
  RunCheckpoints make_checkpoints(Module& module);
  RunLoggers make_loggers(const Module& module) const;
  checkpoint::TrainingState fresh_state(const DataModule& data, const data::Dataset& train,
                                        const Optimization& optimization) const;
  checkpoint::TrainingState begin(RunCheckpoints& checkpoints, RunLoggers& loggers,
                                  const checkpoint::TrainingState& fresh);
  EvaluationResult run_evaluation(Module& module, const data::Dataset* dataset, int batch_size,
                                  Stage stage);

  TrainerOptions options_;
  Place place_;
  Display display_;
  std::unique_ptr<parallel::DataParallel> parallel_;
};

}  // namespace lrun::loop
