// Weights after 50 steps against PyTorch in Python: one process, its own AdamW and clipping.
// Needs a Python with torch 2.11 and numpy in LRUN_PEER_PYTHON; skipped without.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/trainer/parallel/small_model.h"
#include "tests/trainer/parallel/worlds.h"
#include "trainer/optim/schedules.h"

namespace lrun::parallel {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 50;
constexpr Options kOptions{.leaves = 4, .zero_stage = 1, .max_norm = 1.0};
constexpr optim::Schedule kSchedule{
    .kind = optim::ScheduleKind::Cosine, .rate = 3e-3, .warmup_steps = 5, .total_steps = kSteps};

template <class Value>
void append(const fs::path& file, const Value* values, std::int64_t count) {
  std::ofstream(file, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(values),
             count * static_cast<std::int64_t>(sizeof(Value)));
}

template <class Value>
std::vector<Value> read(const fs::path& file) {
  std::vector<Value> values(fs::file_size(file) / sizeof(Value));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
  return values;
}

std::vector<float> flattened(const torch::nn::Module& model) {
  std::vector<float> all;
  for (const at::Tensor& parameter : model.parameters()) {
    const float* values = parameter.const_data_ptr<float>();
    all.insert(all.end(), values, values + parameter.numel());
  }
  return all;
}

void write_inputs(const fs::path& folder) {
  const auto parameters = flattened(SmallModel());
  append(folder / "parameters.f32", parameters.data(), std::ssize(parameters));
  for (int step = 0; step < kSteps; ++step) {
    for (int leaf = 0; leaf < kOptions.leaves; ++leaf) {
      const Batch batch = batch_of(step, leaf);
      append(folder / "images.f32", batch.images.const_data_ptr<float>(), batch.images.numel());
      append(folder / "labels.i64", batch.labels.const_data_ptr<std::int64_t>(),
             batch.labels.numel());
    }
    const double rate = optim::learning_rate(kSchedule, step);
    append(folder / "rates.f64", &rate, 1);
  }
  std::ofstream(folder / "settings.txt")
      << kSteps << ' ' << kOptions.leaves << ' ' << kLeafSamples << ' ' << kOptions.max_norm << ' '
      << kOptions.adamw.weight_decay << '\n';
}

struct Trained {
  std::vector<float> parameters;
  std::vector<double> norms;
  std::vector<double> losses;  // mean of a sample
};

// Two ranks, stage 1.
Trained train_here() {
  Trained trained;
  run_world(2, [&](comm::Comm& comm) {
    SmallModel model;
    DataParallel training(named_parameters(model), comm, kOptions);
    Trained mine;
    for (int step = 0; step < kSteps; ++step) {
      compute_leaves(training, model, step);
      const StepResult result = training.step(optim::learning_rate(kSchedule, step));
      mine.norms.push_back(result.grad_norm);
      mine.losses.push_back(result.loss_sum / static_cast<double>(result.count));
    }
    if (comm.rank().value != 0) return;
    mine.parameters = flattened(model);
    trained = std::move(mine);
  });
  return trained;
}

template <class Value>
double relative_difference(const std::vector<Value>& mine, const std::vector<Value>& theirs) {
  EXPECT_EQ(mine.size(), theirs.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(mine[i] - theirs[i])));
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
  }
  return difference / largest;
}

class Peer : public testing::Test {
 protected:
  void SetUp() override {
    const char* python = std::getenv("LRUN_PEER_PYTHON");
    if (python == nullptr || *python == 0) {
      GTEST_SKIP() << "LRUN_PEER_PYTHON names no Python with torch 2.11";
    }
    python_ = python;
    std::string name = (fs::temp_directory_path() / "lrun-peer-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  int run_peer() const {
    const std::string script = LRUN_SOURCE_DIR "/tests/trainer/parallel/peer_adamw.py";
    const std::string command =
        "timeout 90 '" + python_ + "' '" + script + "' '" + folder_.string() + "'";
    return std::system(command.c_str());
  }

  std::string python_;
  fs::path folder_;
};

TEST_F(Peer, WeightsAfterFiftyStepsAreThoseOfPyTorch) {
  write_inputs(folder_);
  ASSERT_EQ(run_peer(), 0);
  const Trained mine = train_here();
  const double parameters =
      relative_difference(mine.parameters, read<float>(folder_ / "trained.f32"));
  EXPECT_LT(parameters, 1e-5);
  EXPECT_LT(relative_difference(mine.norms, read<double>(folder_ / "norms.f64")), 1e-5);
  EXPECT_LT(relative_difference(mine.losses, read<double>(folder_ / "losses.f64")), 1e-5);
  RecordProperty("relative_difference", std::to_string(parameters * 1e9) + "e-9");
}

}  // namespace
}  // namespace lrun::parallel
