#include "trainer/loop/run_checkpoints.h"

#include <utility>

#include "trainer/checkpoint/agreement.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/preflight.h"
#include "trainer/loop/errors.h"
#include "trainer/loop/model_state.h"

namespace lrun::loop {

RunCheckpoints::RunCheckpoints(std::filesystem::path folder, CheckpointOptions options,
                               Generation generation, Parts parts)
    : folder_(std::move(folder)),
      options_(options),
      parts_(parts),
      writer_({.folder = folder_, .keep_last = options.keep_last, .generation = generation},
              parts.comm) {}

void RunCheckpoints::check_folder() {
  const auto kinds = static_cast<int>(parts_.parallel.owned_state().size());
  const std::int64_t bytes =
      checkpoint::estimate_bytes(parts_.parallel.layout().elements, kinds, options_.keep_last);
  const std::string problem = checkpoint::check_folder(folder_, bytes, parts_.comm.rank());
  const std::string sentence = checkpoint::first_failure(parts_.comm, problem);
  if (!sentence.empty()) throw UsageError(sentence);
}

std::optional<checkpoint::TrainingState> RunCheckpoints::load() {
  try {
    const auto loaded =
        checkpoint::load_newest(folder_, target_of(parts_.parallel, parts_.module), parts_.comm,
                                [this](const std::string& line) { parts_.display.warning(line); });
    if (!loaded) return std::nullopt;
    restore_buffers(*loaded, parts_.module);
    parts_.parallel.after_load(loaded->manifest.state.optimizer_steps);
    last_saved_step_ = loaded->manifest.step;
    return loaded->manifest.state;
  } catch (const checkpoint::CheckpointError& error) {
    throw UsageError(error.what());
  }
}

bool RunCheckpoints::is_due(std::int64_t step, std::int64_t epochs_done, bool epoch_ended) const {
  const bool by_steps =
      options_.every_n_train_steps > 0 && step % options_.every_n_train_steps == 0;
  const bool by_epochs =
      epoch_ended && options_.every_n_epochs > 0 && epochs_done % options_.every_n_epochs == 0;
  return by_steps || by_epochs;
}

void RunCheckpoints::save(const checkpoint::TrainingState& state) {
  parts_.agent.saving();
  const checkpoint::Shard shard = shard_of(parts_.parallel, parts_.module);
  const checkpoint::SaveOutcome outcome = writer_.save(shard, state.optimizer_steps, state);
  last_error_ = outcome.error;
  if (!outcome.is_saved()) {
    parts_.display.warning("checkpoint of step " + std::to_string(state.optimizer_steps) +
                           " was not saved: " + outcome.error + "; training goes on");
    return;
  }
  last_saved_step_ = state.optimizer_steps;
  if (parts_.comm.rank().value == 0) {
    parts_.agent.checkpoint_saved(state.optimizer_steps, outcome.folder.string());
  }
}

}  // namespace lrun::loop
