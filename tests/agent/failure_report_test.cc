#include "agent/failure_report.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <chrono>
#include <string>

namespace lrun::agent {
namespace {

std::chrono::system_clock::time_point at(int seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

class FailureReportTest : public ::testing::Test {
 protected:
  FailureReportTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(FailureReportTest, NothingFailedNothingIsSaid) { EXPECT_EQ(to_text({}), ""); }

// The rows I6 and I7 of torchrun's conformance.
TEST_F(FailureReportTest, OneFailureHasTorchrunsForm) {
  FailureReport report{.program = "train.py", .host = "n1", .log_folder = "/logs/job_1"};
  report.first_cause = FirstCause{.node = {"n1"},
                                  .global_rank = {},
                                  .local_rank = {},
                                  .sentence = "worker 1 ended with exit code 7"};
  report.workers = {{.global_rank = {1},
                     .local_rank = {0},
                     .pid = 42,
                     .status = {.by_signal = false, .code = 7},
                     .ended_at = at(1700000000),
                     .last_lines = "two\nlines"}};
  EXPECT_EQ(to_text(report),
            "The job failed: worker 1 ended with exit code 7\n"
            "============================================================\n"
            "train.py FAILED\n"
            "------------------------------------------------------------\n"
            "Failures:\n"
            "  <NO_OTHER_FAILURES>\n"
            "------------------------------------------------------------\n"
            "Root Cause (first observed failure):\n"
            "[0]:\n"
            "  time      : 2023-11-14_22:13:20\n"
            "  host      : n1\n"
            "  rank      : 1 (local_rank: 0)\n"
            "  exitcode  : 7 (pid: 42)\n"
            "  error_file: <N/A>\n"
            "  traceback : To enable traceback see: "
            "https://pytorch.org/docs/stable/elastic/errors.html\n"
            "  last lines: two\n  lines\n"
            "  logs      : /logs/job_1\n"
            "============================================================\n");
}

TEST_F(FailureReportTest, TheEarliestIsTheRootAndTheOthersAreListed) {
  FailureReport report{.program = "p", .host = "h"};
  report.workers = {{.global_rank = {2},
                     .pid = 12,
                     .status = {.by_signal = true, .code = SIGTERM},
                     .ended_at = at(30)},
                    {.global_rank = {1},
                     .pid = 11,
                     .status = {.by_signal = true, .code = SIGKILL},
                     .ended_at = at(20)},
                    {.global_rank = {0},
                     .pid = 10,
                     .status = {.by_signal = true, .code = SIGTERM},
                     .ended_at = at(30)}};
  const std::string text = to_text(report);
  const std::size_t root = text.find("Root Cause");
  ASSERT_NE(root, std::string::npos);
  EXPECT_NE(text.find("[1]:", root), std::string::npos) << text;
  EXPECT_NE(text.find("exitcode  : -9 (pid: 11)", root), std::string::npos);
  EXPECT_NE(text.find("Signal 9 (SIGKILL) received by PID 11", root), std::string::npos);
  EXPECT_LT(text.find("rank      : 0"), text.find("rank      : 2"));
  EXPECT_LT(text.find("exitcode  : -15 (pid: 12)"), root);
}

TEST_F(FailureReportTest, ARecordIsShownAndCannotDriveTheTerminal) {
  FailureReport report{.program = "p\x1b[31m", .host = "h"};
  report.workers = {{.status = {.by_signal = false, .code = 1},
                     .error_file = "/e.json",
                     .call_stack = "Traceback\n  line\x1b[2J",
                     .last_lines = "not shown"}};
  const std::string text = to_text(report);
  EXPECT_NE(text.find("  error_file: /e.json\n  traceback : Traceback\n    line?[2J\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("not shown"), std::string::npos);
}

}  // namespace
}  // namespace lrun::agent
