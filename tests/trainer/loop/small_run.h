// A run of a small model on a small data set through the whole Trainer, for tests.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "trainer/comm/comm.h"
#include "trainer/loop/trainer.h"

namespace lrun::loop {

struct SmallRun {
  std::filesystem::path folder;
  int zero_stage = 0;
  std::int64_t max_epochs = 3;
  std::int64_t samples = 115;  // 12 leaves of 2: the last global batch of an epoch is short
  std::uint64_t seed = 5;
  double learning_rate = 0.01;
  // Called after each step, before its checkpoint.
  std::function<void(std::int64_t step)> after_step = {};
};

struct SmallResult {
  FitResult fit;
  std::string weights;       // SHA-256
  std::int64_t correct = 0;  // on the test data
};

// Trains, or goes on, and tests, as one rank of `comm`'s world.
SmallResult run_small(comm::Comm& comm, const SmallRun& run);

// The same in a world of forked processes; each must end with the same weights, which are returned.
std::string weights_of_world(int world_size, const SmallRun& run);

}  // namespace lrun::loop
