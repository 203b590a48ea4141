// One agent, a real service on the same loop, real workers: ends, signals, restarts, channel.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/agent/agent_fixture.h"

namespace lrun::agent {
namespace {

using testing::AgentRun;
using testing::io_worker;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// B081, and the rows D1, D5, D6, C4 of torchrun's conformance.
TEST(AgentIoTest, WorkersSeeTheWholeEnvironmentAndOnlyOurValues) {
  AgentRun run({io_worker(), "print-environment"});
  run.options.config.facts.slots = 2;
  run.options.config.max_restarts = 3;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "LRUN_CHANNEL_FD"}) {
    run.options.base_environment[name] = "99";
  }
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
  for (const std::string rank : {"0", "1"}) {
    const std::string seen = "\n" + run.log("attempt_0/" + rank + "/stdout.log");
    for (const std::string& entry :
         std::vector<std::string>{"LOCAL_RANK=" + rank,
                                  "RANK=" + rank,
                                  "WORLD_SIZE=2",
                                  "LOCAL_WORLD_SIZE=2",
                                  "GROUP_RANK=0",
                                  "GROUP_WORLD_SIZE=1",
                                  "ROLE_NAME=default",
                                  "ROLE_RANK=" + rank,
                                  "ROLE_WORLD_SIZE=2",
                                  "MASTER_ADDR=127.0.0.1",
                                  "TORCHELASTIC_RESTART_COUNT=0",
                                  "TORCHELASTIC_MAX_RESTARTS=3",
                                  "TORCHELASTIC_RUN_ID=job7",
                                  "TORCHELASTIC_USE_AGENT_STORE=False",
                                  "LRUN_RUN_ID=job7",
                                  "LRUN_RESTART_COUNT=0",
                                  "LRUN_CHANNEL_FD=7",
                                  "OMP_NUM_THREADS=1",
                                  "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                                  "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                                  "TORCHELASTIC_ERROR_FILE=" + run.options.output.run_folder +
                                      "/attempt_0/" + rank + "/error.json",
                                  run.mark().entry()}) {
      EXPECT_TRUE(has(seen, "\n" + entry + "\n")) << entry << " is not in" << seen;
    }
    EXPECT_TRUE(has(seen, "\nLRUN_GENERATION="));
    EXPECT_TRUE(has(seen, "\nMASTER_PORT="));
    EXPECT_FALSE(has(seen, "=0\nMASTER_PORT=0\n"));
  }
}

TEST(AgentIoTest, ArgumentsNameTheLocalRank) {
  AgentRun run({"sh", "-c", "echo ${local_rank} $local_rank $RANK '$local_ranks' '${other}'"});
  run.options.config.facts.slots = 2;
  run.start();
  ASSERT_TRUE(run.run());
  EXPECT_EQ(run.log("attempt_0/0/stdout.log"), "0 0 0 $local_ranks ${other}\n");
  EXPECT_EQ(run.log("attempt_0/1/stdout.log"), "1 1 1 $local_ranks ${other}\n");
}

// B060, B062: the one that failed is named, not those that were stopped for it.
TEST(AgentIoTest, TheFirstFailureIsReportedAndTheOthersAreStopped) {
  AgentRun run({"sh", "-c", "test $local_rank = 1 || exec sleep 60; echo last words >&2; exit 42"});
  run.options.config.facts.slots = 3;
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Failed);
  ASSERT_TRUE(finish->cause);
  EXPECT_EQ(finish->cause->kind, FailureKind::ExitCode);
  EXPECT_EQ(finish->cause->code, 42);
  EXPECT_EQ(finish->cause->global_rank, GlobalRank{1});
  EXPECT_TRUE(has(finish->cause->sentence, "last words")) << finish->cause->sentence;
  const std::string report = run.agent().report();
  EXPECT_TRUE(has(report, "exitcode  : 42 (pid: ")) << report;
  EXPECT_TRUE(has(report, "exitcode  : -15 (pid: ")) << report;
  EXPECT_TRUE(has(report, "rank      : 1 (local_rank: 1)")) << report;
  EXPECT_TRUE(has(report, "  last lines: last words\n")) << report;
  EXPECT_EQ(run.metric("lrun_worker_exits_total", {"kind=exit"}), 1);
  EXPECT_EQ(run.metric("lrun_worker_exits_total", {"kind=stopped"}), 2);
  EXPECT_TRUE(run.mark().carriers().empty());
}

TEST(AgentIoTest, AProgramThatCannotRunIsNamed) {
  AgentRun run({"/nonexistent/program"});
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Failed);
  ASSERT_TRUE(finish->cause);
  EXPECT_EQ(finish->cause->kind, FailureKind::SpawnFailed);
  EXPECT_TRUE(has(finish->cause->sentence, "/nonexistent/program")) << finish->cause->sentence;
  EXPECT_TRUE(has(finish->cause->sentence, "No such file")) << finish->cause->sentence;
}

TEST(AgentIoTest, ASignalReachesTheWorkersAndTheyMayEndInOrder) {
  AgentRun run({io_worker(), "catch-term"});
  run.options.config.facts.slots = 2;
  run.start();
  const auto is_ready = [&] {
    return has(run.console_stdout(), "[default0]:ready") &&
           has(run.console_stdout(), "[default1]:ready");
  };
  ASSERT_TRUE(run.run_until(is_ready));
  run.agent().signal(SIGTERM);
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Stopped);
  EXPECT_EQ(finish->stopped_by_signal, SIGTERM);
  EXPECT_TRUE(has(run.console_stdout(), "[default0]:got TERM\n"));
  EXPECT_TRUE(has(run.console_stdout(), "[default1]:got TERM\n"));
}

// B044: the grace is what was asked for.
TEST(AgentIoTest, AWorkerThatIgnoresTheSignalIsKilledAfterTheGrace) {
  AgentRun run({io_worker(), "ignore-term"});
  run.options.config.kill_grace = std::chrono::milliseconds(500);
  run.start();
  ASSERT_TRUE(run.run_until([&] { return has(run.console_stdout(), "ready"); }));
  const auto asked_at = std::chrono::steady_clock::now();
  run.agent().signal(SIGTERM);
  ASSERT_TRUE(run.run());
  EXPECT_GE(std::chrono::steady_clock::now() - asked_at, std::chrono::milliseconds(500));
  EXPECT_TRUE(run.mark().carriers().empty());
}

TEST(AgentIoTest, ASecondSignalKillsAtOnce) {
  AgentRun run({io_worker(), "ignore-term"});
  run.options.config.kill_grace = std::chrono::minutes(10);
  run.start();
  ASSERT_TRUE(run.run_until([&] { return has(run.console_stdout(), "ready"); }));
  run.agent().signal(SIGTERM);
  run.agent().signal(SIGTERM);
  EXPECT_TRUE(run.run());
}

// B074: the log of the crash is still there.
TEST(AgentIoTest, ARestartWritesAnAttemptOfItsOwn) {
  AgentRun run(
      {"sh", "-c",
       "echo attempt $TORCHELASTIC_RESTART_COUNT; exit $((1 - TORCHELASTIC_RESTART_COUNT))"});
  run.options.config.max_restarts = 1;
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
  EXPECT_EQ(run.log("attempt_0/0/stdout.log"), "attempt 0\n");
  EXPECT_EQ(run.log("attempt_1/0/stdout.log"), "attempt 1\n");
  EXPECT_EQ(run.metric("lrun_agent_restarts_total", {"cause=exit"}), 1);
  EXPECT_EQ(run.agent().report(), "");
}

TEST(AgentIoTest, AGarbledChannelHarmsNobody) {
  for (const std::string& said :
       {std::string("garbage"), std::string("{\"type\":\"progress\",\"step\":1}"),
        std::string(100'000, 'x')}) {
    AgentRun run({io_worker(), "speak", said});
    run.start();
    const auto finish = run.run();
    ASSERT_TRUE(finish);
    EXPECT_EQ(finish->outcome, Outcome::Succeeded);
    EXPECT_EQ(run.log("attempt_0/0/stdout.log"), "channel closed\n");
  }
}

TEST(AgentIoTest, TheBlackboardAnswersOverTheChannel) {
  AgentRun run({io_worker(), "speak",
                "{\"type\":\"hello\",\"version\":1}\n"
                "{\"type\":\"publish\",\"key\":\"k\",\"value\":\"v\"}\n"
                "{\"type\":\"lookup\",\"key\":\"k\"}"});
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
  EXPECT_EQ(run.log("attempt_0/0/stdout.log"),
            "{\"type\":\"value\",\"key\":\"k\",\"value\":\"v\"}\n");
}

TEST(AgentIoTest, WhatAWorkerSaysLastIsHeard) {
  AgentRun run({"sh", "-c",
                "printf '{\"type\":\"hello\",\"version\":1}\\n{\"type\":\"failed\",\"reason\":\"no "
                "luck\"}\\n'"
                " >&$LRUN_CHANNEL_FD; exit 3"});
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  ASSERT_TRUE(finish->cause);
  EXPECT_EQ(finish->cause->kind, FailureKind::Reported);
  EXPECT_TRUE(has(finish->cause->sentence, "no luck")) << finish->cause->sentence;
}

// B057, B059.
TEST(AgentIoTest, ADaemonisedGrandchildDoesNotOutliveItsWorker) {
  AgentRun run({io_worker(), "leave-daemon"});
  run.options.config.facts.slots = 2;
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
  EXPECT_TRUE(run.mark().carriers().empty());
}

TEST(AgentIoTest, TheJobSurvivesTheDeathOfItsKeeper) {
  AgentRun run({"sh", "-c", "echo up; test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 60"});
  run.options.config.max_restarts = 1;
  run.start();
  ASSERT_TRUE(run.run_until([&] { return has(run.console_stdout(), "up"); }));
  ::kill(run.keeper_pid(), SIGKILL);
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
  EXPECT_EQ(run.log("attempt_1/0/stdout.log"), "up\n");
  EXPECT_TRUE(run.mark().carriers().empty());
}

// The rows I1 and I4 of torchrun's conformance.
TEST(AgentIoTest, AnErrorRecordIsShownAndABadOneIsData) {
  const std::string record =
      R"({"message":{"message":"ValueError: no",)"
      R"("extraInfo":{"py_callstack":"Traceback\n  at x","timestamp":"1700000000"}}})";
  AgentRun run({"sh", "-c", "printf '%s' '" + record + "' > $TORCHELASTIC_ERROR_FILE; exit 1"});
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish && finish->cause);
  EXPECT_TRUE(has(finish->cause->sentence, "ValueError: no")) << finish->cause->sentence;
  EXPECT_TRUE(has(run.agent().report(), "traceback : Traceback\n    at x\n"))
      << run.agent().report();

  AgentRun bad({"sh", "-c", "mkfifo $TORCHELASTIC_ERROR_FILE; echo plain >&2; exit 1"});
  bad.start();
  const auto bad_finish = bad.run();
  ASSERT_TRUE(bad_finish && bad_finish->cause);
  EXPECT_TRUE(has(bad_finish->cause->sentence, "plain")) << bad_finish->cause->sentence;
}

// B133, M9: series exist before the first event; the time of all phases is the wall time.
TEST(AgentIoTest, MetricsBeginAtZeroAndTimeAddsUp) {
  AgentRun run({"sh", "-c", "sleep 0.5"});
  run.options.config.facts.slots = 2;
  run.start();
  EXPECT_EQ(run.metric("lrun_agent_restarts_total", {"cause=oom"}), 0);
  EXPECT_EQ(run.metric("lrun_time_seconds_total", {"phase=train", "cause=none"}), 0);
  EXPECT_EQ(run.metric("lrun_worker_step", {"local_rank=1"}), 0);
  EXPECT_EQ(run.metric("lrun_output_dropped_bytes_total", {"stream=stderr"}), 0);
  ASSERT_TRUE(run.run());
  run.agent().update_metrics();
  const auto passed = std::chrono::steady_clock::now() - run.started_at();
  const double wall = std::chrono::duration<double>(passed).count();
  EXPECT_NEAR(run.metric_sum("lrun_time_seconds_total"), 2 * wall, 0.02 * wall + 0.05);
  EXPECT_GT(run.metric("lrun_time_seconds_total", {"phase=train", "cause=none"}), 0.9);
  EXPECT_EQ(run.metric("lrun_agent_state", {"state=done"}), 1);
  EXPECT_EQ(run.metric("lrun_agent_state", {"state=running"}), 0);
}

}  // namespace
}  // namespace lrun::agent
