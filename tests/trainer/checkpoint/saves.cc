#include "tests/trainer/checkpoint/saves.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lrun::checkpoint {
namespace {

const std::vector<std::string> kKinds = {"param", "exp_avg", "exp_avg_sq"};
constexpr float kPadding = 0;

float value_at(std::int64_t step, std::size_t kind, std::int64_t place) {
  return static_cast<float>(step * 1000 + static_cast<std::int64_t>(kind) * 100000 + place % 997);
}

}  // namespace

parallel::FlatLayout small_layout() {
  return parallel::make_layout({{"first.weight", {50, 60}},
                                {"first.bias", {50}},
                                {"second.weight", {100, 110}},
                                {"scale", {}}});
}

SavedState::SavedState(const parallel::FlatLayout& layout, comm::Range range, std::int64_t step)
    : tensors(tensor_records(layout)), owned(range) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::vector<float> part(static_cast<std::size_t>(owned.size()), kPadding);
    for (const TensorRecord& tensor : tensors) {
      const std::int64_t end = std::min(owned.end, tensor.offset + tensor.elements);
      for (std::int64_t at = std::max(owned.begin, tensor.offset); at < end; ++at) {
        part[static_cast<std::size_t>(at - owned.begin)] = value_at(step, kind, at);
      }
    }
    values.push_back(std::move(part));
  }
}

Shard SavedState::shard() const {
  Shard shard{.tensors = tensors, .owned = owned, .pieces = {}, .buffers = {}};
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    shard.pieces.push_back({.kind = kKinds[kind], .values = values[kind]});
  }
  shard.buffers.push_back(
      {.name = "seen", .dtype = "I64", .shape = {3}, .bytes = std::as_bytes(std::span(buffer))});
  return shard;
}

LoadedState::LoadedState(const parallel::FlatLayout& layout, comm::Range range)
    : tensors(tensor_records(layout)),
      owned(range),
      values(kKinds.size(), std::vector<float>(static_cast<std::size_t>(range.size()), kPadding)) {}

LoadTarget LoadedState::target() {
  LoadTarget target{.tensors = tensors, .owned = owned, .pieces = {}, .buffers = {"seen"}};
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    target.pieces.push_back({.kind = kKinds[kind], .values = values[kind]});
  }
  return target;
}

bool LoadedState::is_of_step(std::int64_t step) const {
  return values == SavedState(small_layout(), owned, step).values;
}

std::unique_ptr<comm::Comm> alone() { return comm::Comm::connect(comm::Comm::Options{}, nullptr); }

TrainingState state_of_step(std::int64_t step) {
  TrainingState state;
  state.epoch = step / 10;
  state.consumed = step % 10;
  state.optimizer_steps = step;
  state.seed = 0xffffffffffffffffU;
  state.environment = {{"threads", "1"}};
  state.loggers = {{"csv", "1234"}};
  return state;
}

SaveOutcome save_step(comm::Comm& comm, const std::filesystem::path& folder, std::int64_t step,
                      int keep_last, Generation generation) {
  Writer writer({.folder = folder, .keep_last = keep_last, .generation = generation}, comm);
  const parallel::FlatLayout layout = small_layout();
  const SavedState saved(layout, layout.owned_by(comm.rank(), comm.world_size()), step);
  return writer.save(saved.shard(), step, state_of_step(step));
}

std::int64_t load_alone(const std::filesystem::path& folder, std::vector<std::string>* lines) {
  const auto comm = alone();
  const parallel::FlatLayout layout = small_layout();
  LoadedState state(layout, layout.owned_by(GlobalRank{0}, 1));
  const auto loaded = load_newest(folder, state.target(), *comm, [&](const std::string& line) {
    if (lines != nullptr) lines->push_back(line);
  });
  if (!loaded) return -1;
  EXPECT_TRUE(state.is_of_step(loaded->manifest.step));
  EXPECT_EQ(loaded->manifest.state, state_of_step(loaded->manifest.step));
  return loaded->manifest.step;
}

}  // namespace lrun::checkpoint
