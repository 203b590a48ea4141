#include "agent/root_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace lrun::agent {
namespace {

using ::testing::HasSubstr;

Culprit worker_three() {
  return Culprit{
      .node = {"a"}, .global_rank = GlobalRank{3}, .local_rank = LocalRank{1}, .pid = 4711};
}

TEST(RootCause, NamesWorkerNodeRanksPidAndExitCode) {
  const FirstCause cause = cause_of_exit(worker_three(), ExitStatus{.code = 42}, "");
  EXPECT_EQ(cause.sentence, "worker 3 (node a, local rank 1, pid 4711) ended with exit code 42");
  EXPECT_EQ(cause.kind, FailureKind::ExitCode);
  EXPECT_EQ(cause.code, 42);
  EXPECT_EQ(cause.global_rank, GlobalRank{3});
  EXPECT_EQ(cause.local_rank, LocalRank{1});
  EXPECT_EQ(cause.pid, 4711);
  EXPECT_EQ(cause.node, NodeId{"a"});
}

TEST(RootCause, NamesSignalCoreAndLastWords) {
  const FirstCause cause = cause_of_exit(
      worker_three(), ExitStatus{.by_signal = true, .code = SIGSEGV, .core_dumped = true},
      "Fatal Python error:\n\tSegmentation fault\n");
  EXPECT_EQ(cause.sentence,
            "worker 3 (node a, local rank 1, pid 4711) was ended by SIGSEGV, core dumped: Fatal "
            "Python error: Segmentation fault");
  EXPECT_EQ(cause.kind, FailureKind::Signal);
}

// B051: a worker that gets SIGINT alone has failed.
TEST(RootCause, AnInterruptedWorkerIsAFailure) {
  const FirstCause cause =
      cause_of_exit(worker_three(), ExitStatus{.by_signal = true, .code = SIGINT}, "");
  EXPECT_THAT(cause.sentence, HasSubstr("SIGINT"));
  EXPECT_EQ(cause.kind, FailureKind::Signal);
}

TEST(RootCause, OutOfMemoryIsAKindOfItsOwn) {
  const FirstCause cause = cause_of_exit(
      worker_three(), ExitStatus{.by_signal = true, .code = SIGKILL, .out_of_memory = true}, "");
  EXPECT_EQ(cause.kind, FailureKind::OutOfMemory);
  EXPECT_THAT(cause.sentence, HasSubstr("SIGKILL, out of memory"));
}

TEST(RootCause, OtherKindsHaveTheirSentences) {
  EXPECT_THAT(cause_of_stall(worker_three(), std::chrono::seconds(30), 7).sentence,
              HasSubstr("no progress beyond step 7 within the stall time-out of 30 s"));
  EXPECT_THAT(cause_of_spawn_failure(worker_three(), "No such file").sentence,
              HasSubstr("could not be started: No such file"));
  EXPECT_THAT(cause_of_keeper_loss(NodeId{"a"}).sentence, HasSubstr("node a died"));
  EXPECT_THAT(cause_of_lost_lease(NodeId{"a"}, std::chrono::milliseconds(3333)).sentence,
              HasSubstr("for 3333 ms"));
  const channel::Failed victim{.reason = "connection reset", .peer = GlobalRank{5}};
  EXPECT_THAT(cause_of_report(worker_three(), victim).sentence,
              HasSubstr("lost worker 5: connection reset"));
  const channel::Failed own{.reason = "loss is NaN", .peer = {}};
  EXPECT_THAT(cause_of_report(worker_three(), own).sentence,
              HasSubstr("reported a failure: loss is NaN"));
}

TEST(RootCause, SignalsWithoutANameKeepTheirNumber) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(63), "signal 63");
}

TEST(RootCause, TextFromOutsideBecomesOneBoundedPrintableLine) {
  EXPECT_EQ(one_line("  a\r\n\x1b[31m b\t\tc \x7f", 100), "a [31m b c");
  EXPECT_EQ(one_line("", 10), "");
  EXPECT_EQ(one_line("0123456789", 10), "0123456789");
  EXPECT_EQ(one_line("0123456789a", 10), "0123456…");
  // No torn UTF-8: "ä" is two bytes and does not fit in front of the mark.
  EXPECT_EQ(one_line("012345äääää", 10), "012345…");
  const FirstCause cause =
      cause_of_exit(worker_three(), ExitStatus{.code = 1}, std::string(5000, 'x'));
  EXPECT_LE(cause.sentence.size(), kSentenceBytesMax);
}

TEST(RootCause, TheFirstCulpritWinsOverEarlierVictims) {
  RootCause causes;
  const FirstCause victim = cause_of_report(worker_three(), {.reason = "", .peer = GlobalRank{0}});
  const FirstCause culprit = cause_of_exit(worker_three(), ExitStatus{.code = 42}, "");
  const FirstCause later = cause_of_exit(worker_three(), ExitStatus{.code = 143}, "");
  EXPECT_FALSE(causes.first());
  EXPECT_FALSE(causes.add(victim, true));
  EXPECT_EQ(causes.first(), victim);
  EXPECT_FALSE(causes.has_culprit());
  EXPECT_TRUE(causes.add(culprit, false));
  EXPECT_FALSE(causes.add(later, false));
  EXPECT_EQ(causes.first(), culprit);
  causes.clear();
  EXPECT_FALSE(causes.first());
}

}  // namespace
}  // namespace lrun::agent
