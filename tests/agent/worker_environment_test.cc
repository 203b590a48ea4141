#include "agent/worker_environment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrun::agent {
namespace {

WorkerEnv two_slots() {
  WorkerEnv worker;
  worker.local_rank = {1};
  worker.local_world_size = 2;
  return worker;
}

// The rows D5, D6, D7, D8 of torchrun's conformance; B081.
TEST(WorkerEnvironmentTest, TheParentsValuesWinWhereTorchrunLetsThem) {
  const Environment defaults = worker_environment({}, two_slots(), "SIGTERM");
  EXPECT_EQ(defaults.at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(defaults.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "1");
  EXPECT_EQ(defaults.at("TORCHELASTIC_SIGNALS_TO_HANDLE"), "SIGTERM");
  EXPECT_EQ(worker_environment({}, WorkerEnv{}, "").count("OMP_NUM_THREADS"), 0u);

  const Environment parent{{"OMP_NUM_THREADS", "7"},
                           {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
                           {"RANK", "5"},
                           {"LRUN_CHANNEL_FD", "12"},
                           {"CUDA_VISIBLE_DEVICES", "1,2"}};
  const Environment seen = worker_environment(parent, two_slots(), "");
  EXPECT_EQ(seen.at("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(seen.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
  EXPECT_EQ(seen.at("CUDA_VISIBLE_DEVICES"), "1,2");
  EXPECT_EQ(seen.at("RANK"), "0");
  EXPECT_EQ(seen.count("LRUN_CHANNEL_FD"), 0u);
}

TEST(WorkerEnvironmentTest, OverriddenNamesAreThoseThatWorkersWillNotSee) {
  EXPECT_EQ(overridden_names({{"RANK", "5"}, {"HOME", "/"}, {"WORLD_SIZE", "9"}}),
            (std::vector<std::string>{"RANK", "WORLD_SIZE"}));
  EXPECT_TRUE(overridden_names({{"PATH", "/bin"}}).empty());
}

// The rows C4, C5, C6: the program itself and every other name stay.
TEST(WorkerEnvironmentTest, OnlyTheLocalRankIsReplacedInArguments) {
  const std::vector<std::string> command{
      "p_$local_rank",   "$local_rank", "${local_rank}x",
      "a$local_rank.b$", "$$",          "$local_ranks ${other} $RANK"};
  EXPECT_EQ(worker_command(command, {3}),
            (std::vector<std::string>{"p_$local_rank", "3", "3x", "a3.b$", "$$",
                                      "$local_ranks ${other} $RANK"}));
}

}  // namespace
}  // namespace lrun::agent
