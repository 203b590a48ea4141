// The supervisor's table, rows of signals and of the workers' channel.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Channel = SupervisorTest;

// --- signals -----------------------------------------------------------------------------------

TEST_F(Channel, ASignalGoesOnToTheWorkersAndEndsTheAgent) {
  to_running();
  step(SignalReceived{SIGINT});
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGINT), Pair(1, SIGINT)));
  dies(0, SIGINT);
  exits(1, 1);
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGINT);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Stopped);
}

TEST_F(Channel, ASecondSignalKillsAtOnce) {
  to_running();
  step(SignalReceived{SIGTERM});
  step(SignalReceived{SIGTERM});
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL)));
}

TEST_F(Channel, ALiveWorkerIsAskedToFinishItsStep) {
  to_running_live();
  step(SignalReceived{SIGTERM});
  EXPECT_THAT(told<channel::Drain>(), ElementsAre(0, 1));
  EXPECT_THAT(signals(), IsEmpty());
  exits(0, 0);
  advance(seconds(10));
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGKILL)));
}

TEST_F(Channel, SignalsWhereNothingRunsEndAtOnce) {
  start();
  step(SignalReceived{SIGTERM});
  EXPECT_EQ(only<Leave>().request.kind, LeaveKind::Drained);
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
}

TEST_F(Channel, ASignalInBackoffEndsAtOnce) {
  to_backoff();
  step(SignalReceived{SIGTERM});
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
}

TEST_F(Channel, ASignalWhenFinishedEndsAtOnce) {
  to_finished();
  step(SignalReceived{SIGTERM});
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
}

TEST_F(Channel, ASignalWhileReformingDrainsTheSurvivors) {
  to_reforming();
  step(SignalReceived{SIGTERM});
  EXPECT_THAT(told<channel::Drain>(), ElementsAre(0, 1));
}

TEST_F(Channel, ASignalWhileStoppingChangesWhatFollows) {
  to_stopping();
  step(SignalReceived{SIGTERM});
  EXPECT_THAT(signals(), IsEmpty());
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Finish>().stopped_by_signal, SIGTERM);
}

TEST_F(Channel, ASignalDoesNotHideThatTheJobHasFailed) {
  config_.max_restarts = 0;
  to_running(1);
  exits(0, 3);
  step(SignalReceived{SIGTERM});
  dies(1, SIGTERM);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
  EXPECT_EQ(only<Finish>().cause->code, 3);
  EXPECT_FALSE(only<Finish>().stopped_by_signal);
}

// --- channel -----------------------------------------------------------------------------------

TEST_F(Channel, BlackboardCallsGoOutWithTheGeneration) {
  to_running();
  say(1, channel::PublishValue{"id", "value"});
  EXPECT_EQ(only<Publish>().request.generation, (Generation{1, 1}));
  EXPECT_EQ(only<Publish>().request.key, "id");
  EXPECT_EQ(only<Publish>().request.value, "value");
  EXPECT_EQ(only<Publish>().local_rank, LocalRank{1});
  say(0, channel::LookupValue{"id"});
  EXPECT_EQ(only<Lookup>().request.generation, (Generation{1, 1}));
  step(LookupAnswered{LocalRank{0}, "id", "value", Generation{1, 1}});
  EXPECT_EQ(std::get<channel::Value>(only<TellWorker>().message), (channel::Value{"id", "value"}));
}

TEST_F(Channel, ValuesOfAnEndedGenerationAreDropped) {
  to_running();
  step(LookupAnswered{LocalRank{0}, "id", "old", Generation{1, 0}});
  EXPECT_EQ(count<TellWorker>(), 0U);
}

TEST_F(Channel, WhatIsPublishedBeforeAbortIsAnsweredBelongsToTheOldGeneration) {
  to_reforming();
  EXPECT_THAT(say(0, channel::PublishValue{"id", "old"}), IsEmpty());
  assign(2);
  EXPECT_THAT(say(0, channel::PublishValue{"id", "old"}), IsEmpty());
  EXPECT_THAT(say(0, channel::LookupValue{"id"}), IsEmpty());
  say(0, channel::Aborted{{1, 1}});
  say(0, channel::PublishValue{"id", "new"});
  EXPECT_EQ(only<Publish>().request.generation, (Generation{1, 2}));
}

TEST_F(Channel, AfterTheServiceWasAwayValuesArePublishedAgain) {
  to_running();
  say(0, channel::PublishValue{"a", "1"});
  say(1, channel::PublishValue{"b", "2"});
  step(HeartbeatAnswered{now_, {}, {}});
  EXPECT_EQ(count<Publish>(), 0U);
  step(ServiceUnreachable{.host_answered = true, .is_final = false, .sentence = "refused"});
  step(HeartbeatAnswered{now_, {}, {}});
  EXPECT_EQ(count<Publish>(), 2U);
  step(HeartbeatAnswered{now_, {}, {}});
  EXPECT_EQ(count<Publish>(), 0U);
}

TEST_F(Channel, AWorkerThatBreaksTheGrammarIsPlainAndNeverTrustedAgain) {
  to_running_live();
  step(WorkerGarbled{LocalRank{0}, "not JSON"});
  EXPECT_FALSE(supervisor().workers()[0].is_live);
  EXPECT_THAT(say(0, channel::PublishValue{"id", "value"}), IsEmpty());
  hello(0);
  EXPECT_FALSE(supervisor().workers()[0].is_live);
  rejoin();
  EXPECT_THAT(told<channel::Abort>(), ElementsAre(1));
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGTERM)));
}

TEST_F(Channel, ASurvivorThatBreaksTheGrammarIsReplaced) {
  to_reforming();
  step(WorkerGarbled{LocalRank{0}, "not JSON"});
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGTERM)));
  EXPECT_EQ(state(), AgentState::Reforming);
  step(WorkerGarbled{LocalRank{1}, "not JSON"});
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Channel, AnotherVersionOfTheChannelCountsAsPlain) {
  to_running();
  say(0, channel::Hello{.version = channel::kVersion + 1, .live = true});
  EXPECT_FALSE(supervisor().workers()[0].is_live);
}

TEST_F(Channel, ViewsShowWhatWorkersReport) {
  to_running_live();
  now_ += seconds(1);
  say(1, channel::Progress{.step = 9, .peer = {}});
  const auto views = supervisor().workers();
  EXPECT_EQ(views[1].progress.step, 9);
  EXPECT_EQ(views[1].last_heard, now_);
  EXPECT_EQ(views[1].global_rank, GlobalRank{3});
  EXPECT_TRUE(views[1].is_live);
}

TEST_F(Channel, NotesOfSnapshotsAndCheckpointsChangeNothing) {
  to_running_live();
  EXPECT_THAT(say(0, channel::SnapshotTaken{3}), IsEmpty());
  EXPECT_THAT(say(0, channel::CheckpointSaved{3, "/c"}), IsEmpty());
  EXPECT_THAT(say(0, channel::Ready{{1, 1}}), IsEmpty());
}

}  // namespace
}  // namespace lrun::agent
