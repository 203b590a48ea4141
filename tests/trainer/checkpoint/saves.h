// A small model's state to save and load, for tests of trainer/checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/comm/comm.h"
#include "trainer/parallel/flat_layout.h"

namespace lrun::checkpoint {

// Four norm blocks, so that worlds of up to four have something each.
parallel::FlatLayout small_layout();

// This rank's part of a state whose every element tells step, kind and place.
struct SavedState {
  SavedState(const parallel::FlatLayout& layout, comm::Range owned, std::int64_t step);
  Shard shard() const;

  std::vector<TensorRecord> tensors;
  comm::Range owned;
  std::vector<std::vector<float>> values;  // by kind
  std::vector<std::int64_t> buffer = {1, 2, 3};
};

// Room for this rank's part, filled by a load.
struct LoadedState {
  LoadedState(const parallel::FlatLayout& layout, comm::Range owned);
  LoadTarget target();
  // Whether every element of every tensor is that of `step`.
  bool is_of_step(std::int64_t step) const;

  std::vector<TensorRecord> tensors;
  comm::Range owned;
  std::vector<std::vector<float>> values;
};

// A world of one.
std::unique_ptr<comm::Comm> alone();

TrainingState state_of_step(std::int64_t step);

// Saves step `step` into `folder` with as many ranks as `comm` has.
SaveOutcome save_step(comm::Comm& comm, const std::filesystem::path& folder, std::int64_t step,
                      int keep_last = 3, Generation generation = {1, 1});

// Loads with a world of one. The step found, −1 when there is none. `lines`: the warnings.
std::int64_t load_alone(const std::filesystem::path& folder,
                        std::vector<std::string>* lines = nullptr);

}  // namespace lrun::checkpoint
