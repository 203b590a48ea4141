// Victims and culprits: whoever lost a peer says so, often before the peer's own end is seen.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using Victims = SupervisorTest;

TEST_F(Victims, AVictimsReportIsNotTheCauseAndWaitsForIt) {
  to_running_live(2);
  say(1, channel::Failed{.reason = "reset", .peer = GlobalRank{2}});
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_FALSE(only<FailureSeen>().is_first);
  EXPECT_EQ(count<Join>(), 0U);
  dies(0, SIGKILL);
  EXPECT_TRUE(only<FailureSeen>().is_first);
  EXPECT_EQ(only<Join>().request.failure->code, SIGKILL);
}

TEST_F(Victims, AVictimOfAnotherNodeJoinsFreeWhenTold) {
  to_running_live(2);
  say(0, channel::Failed{.reason = "reset", .peer = GlobalRank{0}});
  rejoin(RejoinReason::WorkerFailed);
  EXPECT_FALSE(only<Join>().request.failure);
  EXPECT_EQ(count<RestartStarted>(), 0U);
}

// Seen in a training job: the victims' node joined first, and the culprit's then joined as if free.
TEST_F(Victims, TheCulpritsNodeSaysSoThoughTheVictimsNodeJoinedFirst) {
  to_running(2);
  dies(0, SIGKILL);
  rejoin(RejoinReason::GenerationEnded);
  EXPECT_EQ(count<RestartStarted>(), 1U);
  EXPECT_EQ(only<SendHeartbeat>().request.failure->code, SIGKILL);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Join>().request.failure->code, SIGKILL);
}

TEST_F(Victims, AVictimWithoutAnyCauseJoinsFreeAfterItsWindow) {
  to_running_live(2);
  say(0, channel::Failed{.reason = "reset", .peer = GlobalRank{0}});
  advance(milliseconds(100));
  EXPECT_FALSE(only<Join>().request.failure);
  EXPECT_EQ(state(), AgentState::Reforming);
}

TEST_F(Victims, TheCulpritMayShowItselfAfterItsVictimsHaveJoined) {
  to_running_live(2);
  say(1, channel::Failed{.reason = "reset", .peer = GlobalRank{2}});
  advance(milliseconds(100));
  dies(0, SIGKILL);
  EXPECT_EQ(only<Join>().request.failure->code, SIGKILL);
}

// Seen in a training job: the victim's word overtook the news of the kill, and nothing was charged.
TEST_F(Victims, AKilledPlainWorkerIsTheCauseThoughItsVictimSpokeFirst) {
  to_running(2);
  say(1, channel::Failed{.reason = "reset", .peer = GlobalRank{2}});
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGKILL);
  EXPECT_TRUE(only<FailureSeen>().is_first);
  EXPECT_EQ(only<FailureSeen>().cause.code, SIGKILL);
  dies(1, SIGTERM);
  advance(seconds(1));
  EXPECT_EQ(only<Join>().request.failure->code, SIGKILL);
}

TEST_F(Victims, AVictimThatWeKilledIsNoCause) {
  to_running(2);
  say(1, channel::Failed{.reason = "reset", .peer = GlobalRank{2}});
  dies(0, SIGTERM);
  EXPECT_EQ(count<FailureSeen>(), 0U);
}

TEST_F(Victims, VictimsWithoutEndAreACrashLoop) {
  config_.crash_loop_limit = 2;
  to_running_live(2);
  say(0, channel::Failed{.reason = "reset", .peer = GlobalRank{0}});
  advance(milliseconds(100));
  assign(2);
  say(0, channel::Aborted{{1, 1}});
  say(1, channel::Aborted{{1, 1}});
  say(0, channel::Failed{.reason = "reset", .peer = GlobalRank{0}});
  advance(milliseconds(100));
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Failed);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Finish>().outcome, Outcome::NoProgress);
}

}  // namespace
}  // namespace lrun::agent
