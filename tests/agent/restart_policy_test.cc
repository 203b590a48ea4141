#include "agent/restart_policy.h"

#include <gtest/gtest.h>

namespace lrun::agent {
namespace {

using std::chrono::seconds;

FirstCause exit_code(int code) {
  FirstCause cause;
  cause.code = code;
  return cause;
}

TEST(RestartPolicy, RestartsUntilTheBudgetIsSpent) {
  RestartPolicy policy({.max_restarts = 2, .crash_loop_limit = 5});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause, .restarts_spent = 0}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .restarts_spent = 1}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .restarts_spent = 2}), Verdict::BudgetSpent);
}

TEST(RestartPolicy, AFailureThatIsNotChargedNeedsNoBudget) {
  RestartPolicy policy({.max_restarts = 0, .crash_loop_limit = 5});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause, .is_charged = false}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .is_charged = true}), Verdict::BudgetSpent);
}

TEST(RestartPolicy, EqualFailuresInARowAreACrashLoop) {
  RestartPolicy policy({.max_restarts = 100, .crash_loop_limit = 3});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause}), Verdict::NoProgress);
}

TEST(RestartPolicy, FreeFailuresCountAsTurnsOfTheLoop) {
  RestartPolicy policy({.max_restarts = 0, .crash_loop_limit = 2});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause, .is_charged = false}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .is_charged = false}), Verdict::NoProgress);
}

TEST(RestartPolicy, AnotherCauseBreaksTheLoop) {
  RestartPolicy policy({.max_restarts = 100, .crash_loop_limit = 2});
  const FirstCause one = exit_code(1);
  const FirstCause two = exit_code(2);
  EXPECT_EQ(policy.judge({.cause = one}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = two}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = one}), Verdict::Restart);
  EXPECT_EQ(policy.failures_in_a_row(), 1);
}

TEST(RestartPolicy, AStepInBetweenBreaksTheLoopButReplayedStepsDoNot) {
  RestartPolicy policy({.max_restarts = 100, .crash_loop_limit = 2});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause, .step = 10}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .step = 11}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .step = 11}), Verdict::NoProgress);
}

TEST(RestartPolicy, ALongRunCountsAsProgressWithoutReports) {
  RestartPolicy policy({.max_restarts = 100, .crash_loop_limit = 2});
  const FirstCause cause = exit_code(1);
  EXPECT_EQ(policy.judge({.cause = cause, .ran_for = seconds(1)}), Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .ran_for = RestartPolicy::kRunIsProgress}),
            Verdict::Restart);
  EXPECT_EQ(policy.judge({.cause = cause, .ran_for = seconds(1)}), Verdict::NoProgress);
}

}  // namespace
}  // namespace lrun::agent
