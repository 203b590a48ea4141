#include "launcher/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

Environment step() {
  return {{"SLURM_JOB_ID", "17"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_NODES", "2"},
          {"SLURM_NODEID", "1"},
          {"SLURM_STEP_NODELIST", "n[2-3]"},
          {"SLURM_JOB_NODELIST", "n[1-3]"},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
          {"SLURM_LOCALID", "0"}};
}

TEST(Scheduler, ReadsAStepOfSrun) {
  const Scheduler found = detect_scheduler(step());
  const auto& slurm = std::get<SlurmStep>(found);
  EXPECT_EQ(slurm.nodes, 2);
  EXPECT_EQ(slurm.node_rank, 1);
  EXPECT_EQ(slurm.hosts.front(), "n2") << "the step's hosts, not the job's";
  EXPECT_EQ(slurm.run_id, "17.0");
  EXPECT_EQ(slurm.slots, 1);
}

TEST(Scheduler, RequeueChangesTheRunId) {
  Environment environment = step();
  environment["SLURM_RESTART_COUNT"] = "2";
  EXPECT_EQ(std::get<SlurmStep>(detect_scheduler(environment)).run_id, "17.0.r2");
  environment["SLURM_RESTART_COUNT"] = "0";
  EXPECT_EQ(std::get<SlurmStep>(detect_scheduler(environment)).run_id, "17.0");
}

TEST(Scheduler, StepsOfOneJobBeginAtDifferentPorts) {
  Environment other = step();
  other["SLURM_STEP_ID"] = "1";
  const int first = std::get<SlurmStep>(detect_scheduler(step())).first_port;
  EXPECT_NE(first, std::get<SlurmStep>(detect_scheduler(other)).first_port);
  EXPECT_GE(first, kSlurmPortsBegin);
  EXPECT_LT(first, kSlurmPortsBegin + kSlurmPorts);
}

TEST(Scheduler, CountsDevices) {
  Environment environment = step();
  environment["SLURM_GPUS_ON_NODE"] = "4";
  EXPECT_EQ(std::get<SlurmStep>(detect_scheduler(environment)).slots, 4);
  environment["CUDA_VISIBLE_DEVICES"] = "0,1";
  EXPECT_EQ(std::get<SlurmStep>(detect_scheduler(environment)).slots, 2);
}

// S7: two tasks on a node.
TEST(Scheduler, SeveralTasksANodeAreRefused) {
  Environment environment = step();
  environment["SLURM_STEP_TASKS_PER_NODE"] = "2(x2)";
  EXPECT_THAT(std::get<UsageError>(detect_scheduler(environment)).sentence,
              HasSubstr("--ntasks-per-node=1"));
}

// S6: started from the batch script.
TEST(Scheduler, OutsideAStepRunsHereAlone) {
  Environment environment{{"SLURM_JOB_ID", "17"}, {"SLURM_NNODES", "2"}};
  EXPECT_THAT(std::get<OutsideStep>(detect_scheduler(environment)).warning, HasSubstr("srun"));
  environment["SLURM_NNODES"] = "1";
  EXPECT_TRUE(std::holds_alternative<NoScheduler>(detect_scheduler(environment)));
  EXPECT_TRUE(std::holds_alternative<NoScheduler>(detect_scheduler({})));
}

TEST(Scheduler, UnreadableVariablesAreNamed) {
  Environment environment = step();
  environment["SLURM_STEP_NODELIST"] = "n[2-";
  EXPECT_THAT(std::get<UsageError>(detect_scheduler(environment)).sentence,
              HasSubstr("SLURM_STEP_NODELIST='n[2-'"));
  environment = step();
  environment["SLURM_NODEID"] = "2";
  EXPECT_THAT(std::get<UsageError>(detect_scheduler(environment)).sentence,
              HasSubstr("SLURM_NODEID='2'"));
}

}  // namespace
}  // namespace lrun::launcher
