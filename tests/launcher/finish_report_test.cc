#include "launcher/finish_report.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

agent::Finish finished(Outcome outcome) {
  agent::Finish finish;
  finish.outcome = outcome;
  return finish;
}

TEST(FinishReport, ExitCodesHaveOneMeaningEach) {
  EXPECT_EQ(exit_code_of(finished(Outcome::Succeeded)), 0);
  EXPECT_EQ(exit_code_of(finished(Outcome::Failed)), 1);
  EXPECT_EQ(exit_code_of(finished(Outcome::NoProgress)), 93);
  agent::Finish refused = finished(Outcome::Failed);
  refused.refusal = Refusal{RefuseReason::JoinTimedOut, "1 of 2 nodes came"};
  EXPECT_EQ(exit_code_of(refused), 3);
  agent::Finish fenced = finished(Outcome::Failed);
  fenced.cause = FirstCause{};
  fenced.cause->kind = FailureKind::Refused;
  EXPECT_EQ(exit_code_of(fenced), 3) << "its rendezvous took another in its place";
  agent::Finish stopped = finished(Outcome::Stopped);
  stopped.stopped_by_signal = 15;
  EXPECT_EQ(exit_code_of(stopped), 143);
}

TEST(FinishReport, QuotesWordsForTheShell) {
  EXPECT_EQ(shell_quoted("--nnodes=1:2"), "--nnodes=1:2");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$HOME"), "'$HOME'");
}

}  // namespace
}  // namespace lrun::launcher
