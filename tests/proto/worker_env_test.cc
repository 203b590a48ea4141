#include "proto/worker_env.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lrun {
namespace {

WorkerEnv everything_set() {
  return {.local_rank = {1},
          .local_world_size = 3,
          .global_rank = {6},
          .world_size = 8,
          .group_rank = {2},
          .group_world_size = 3,
          .role_name = "trainer",
          .role_rank = 4,
          .role_world_size = 5,
          .master_addr = "10.0.0.7",
          .master_port = 4321,
          .run_id = "job7",
          .generation = {.term = 1700000000, .number = 12},
          .restart_count = 2,
          .max_restarts = 3,
          .error_file = "/logs/attempt_2/1/error.json",
          .channel_fd = 9};
}

TEST(WorkerEnvTest, RoundTripKeepsEverything) {
  const auto read = from_environment(to_environment(everything_set()));
  ASSERT_TRUE(std::holds_alternative<WorkerEnv>(read));
  EXPECT_EQ(std::get<WorkerEnv>(read), everything_set());
}

TEST(WorkerEnvTest, RoundTripOfTheDefaults) {
  const auto read = from_environment(to_environment(alone()));
  ASSERT_TRUE(std::holds_alternative<WorkerEnv>(read));
  EXPECT_EQ(std::get<WorkerEnv>(read), alone());
}

TEST(WorkerEnvTest, NamesAreTorchrunsAndLruns) {
  const Environment environment = to_environment(everything_set());
  const Environment expected{
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "3"},
      {"RANK", "6"},
      {"WORLD_SIZE", "8"},
      {"GROUP_RANK", "2"},
      {"GROUP_WORLD_SIZE", "3"},
      {"ROLE_NAME", "trainer"},
      {"ROLE_RANK", "4"},
      {"ROLE_WORLD_SIZE", "5"},
      {"MASTER_ADDR", "10.0.0.7"},
      {"MASTER_PORT", "4321"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "job7"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/attempt_2/1/error.json"},
      {"LRUN_RUN_ID", "job7"},
      {"LRUN_GENERATION", "1700000000.12"},
      {"LRUN_RESTART_COUNT", "2"},
      {"LRUN_CHANNEL_FD", "9"},
  };
  EXPECT_EQ(environment, expected);
}

TEST(WorkerEnvTest, WithoutRankAndWorldSizeAProgramIsAlone) {
  const auto read = from_environment({{"MASTER_PORT", "x"}, {"LOCAL_RANK", "7"}});
  ASSERT_TRUE(std::holds_alternative<WorkerEnv>(read));
  EXPECT_EQ(std::get<WorkerEnv>(read), alone());
}

TEST(WorkerEnvTest, TorchrunsOwnVariablesAreEnough) {
  const auto read = from_environment({{"RANK", "1"},
                                      {"WORLD_SIZE", "2"},
                                      {"TORCHELASTIC_RUN_ID", "t"},
                                      {"TORCHELASTIC_RESTART_COUNT", "4"}});
  ASSERT_TRUE(std::holds_alternative<WorkerEnv>(read));
  EXPECT_EQ(std::get<WorkerEnv>(read).run_id, "t");
  EXPECT_EQ(std::get<WorkerEnv>(read).restart_count, 4);
  EXPECT_EQ(std::get<WorkerEnv>(read).channel_fd, -1);
}

TEST(WorkerEnvTest, EveryBadValueIsNamedInOneLine) {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"WORLD_SIZE", "0"},
      {"WORLD_SIZE", "-2"},
      {"WORLD_SIZE", "x"},
      {"WORLD_SIZE", ""},
      {"WORLD_SIZE", "99999999999999"},
      {"RANK", "8"},
      {"RANK", "-1"},
      {"RANK", " 1"},
      {"RANK", "1.5"},
      {"LOCAL_RANK", "3"},
      {"LOCAL_WORLD_SIZE", "0"},
      {"GROUP_RANK", "3"},
      {"GROUP_WORLD_SIZE", "no"},
      {"ROLE_RANK", "5"},
      {"ROLE_WORLD_SIZE", "0"},
      {"MASTER_PORT", "65536"},
      {"MASTER_PORT", "-1"},
      {"LRUN_GENERATION", "7"},
      {"LRUN_GENERATION", "7."},
      {"LRUN_GENERATION", ".7"},
      {"LRUN_GENERATION", "1.-7"},
      {"LRUN_GENERATION", "1.99999999999999999999"},
      {"LRUN_RESTART_COUNT", "-1"},
      {"TORCHELASTIC_MAX_RESTARTS", "many"},
      {"LRUN_CHANNEL_FD", "-3"},
      {"LRUN_CHANNEL_FD", "stdin"},
  };
  for (const auto& [name, value] : mistakes) {
    Environment environment = to_environment(everything_set());
    environment[name] = value;
    const auto read = from_environment(environment);
    ASSERT_TRUE(std::holds_alternative<EnvironmentError>(read)) << name << "=" << value;
    const std::string& sentence = std::get<EnvironmentError>(read).sentence;
    EXPECT_EQ(sentence.rfind(name + "='" + value + "'", 0), 0u) << sentence;
    EXPECT_NE(sentence.find("must be"), std::string::npos) << sentence;
  }
}

TEST(WorkerEnvTest, AHostileValueCannotForgeALine) {
  const auto read =
      from_environment({{"RANK", "1\n\x1b[31m" + std::string(5000, 'x')}, {"WORLD_SIZE", "2"}});
  ASSERT_TRUE(std::holds_alternative<EnvironmentError>(read));
  const std::string& sentence = std::get<EnvironmentError>(read).sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
  EXPECT_EQ(sentence.find('\x1b'), std::string::npos);
  EXPECT_LT(sentence.size(), 300u);
}

}  // namespace
}  // namespace lrun
