// The checkpoints of one run: when they are due, what they hold, where they go.
//
// Owns the writer and the folder RUN/checkpoints; refuses to know steps and losses. Compute thread,
// all ranks together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/checkpoint/writer.h"
#include "trainer/comm/comm.h"
#include "trainer/loop/agent_link.h"
#include "trainer/loop/display.h"
#include "trainer/parallel/data_parallel.h"

namespace torch::nn {
class Module;
}

namespace lrun::loop {

struct CheckpointOptions {
  std::int64_t every_n_train_steps = 0;  // 0: not by steps
  std::int64_t every_n_epochs = 1;       // 0: not by epochs
  int keep_last = 3;
};

class RunCheckpoints {
 public:
  struct Parts {
    parallel::DataParallel& parallel;
    torch::nn::Module& module;
    comm::Comm& comm;
    AgentLink& agent;
    Display& display;
  };
  RunCheckpoints(std::filesystem::path folder, CheckpointOptions options, Generation generation,
                 Parts parts);

  // Throws UsageError when the folder cannot be written or has too little room.
  void check_folder();
  // Loads the newest good one into the module and the optimizer; nothing when there is none.
  // Throws UsageError.
  std::optional<checkpoint::TrainingState> load();

  bool is_due(std::int64_t step, std::int64_t epochs_done, bool epoch_ended) const;
  // A failed save is a warning: training goes on, the next save tries again.
  void save(const checkpoint::TrainingState& state);

  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t last_saved_step() const { return last_saved_step_; }
  // Of the newest save; empty when it succeeded.
  const std::string& last_error() const { return last_error_; }

 private:
  std::filesystem::path folder_;
  CheckpointOptions options_;
  Parts parts_;
  checkpoint::Writer writer_;
  std::int64_t last_saved_step_ = -1;
  std::string last_error_;
};

}  // namespace lrun::loop
