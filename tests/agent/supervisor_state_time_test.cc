// The supervisor's table, rows of time: heartbeats, fence, grace, stalls.
#include "tests/agent/supervisor_fixture.h"

namespace lrun::agent {
namespace {

using channel::Activity;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Time = SupervisorTest;

channel::Progress progress(std::int64_t step, Activity activity = Activity::Computing) {
  return {
      .step = step, .samples = step * 8, .activity = activity, .peer = {}, .samples_per_second = 5};
}

// --- heartbeats --------------------------------------------------------------------------------

TEST_F(Time, HeartbeatsGoOutInEveryStateButDoneAndNameWhatRuns) {
  start();
  const auto beat = [this] {
    advance(seconds(1));
    return only<SendHeartbeat>().request;
  };
  EXPECT_EQ(beat().state, AgentState::Joining);
  EXPECT_FALSE(beat().running);
  assign(1);
  EXPECT_EQ(beat().state, AgentState::Starting);
  spawned(0);
  spawned(1);
  HeartbeatRequest running = beat();
  EXPECT_EQ(running.state, AgentState::Running);
  EXPECT_EQ(running.running, assignment(1));
  rejoin();
  HeartbeatRequest stopping = beat();
  EXPECT_EQ(stopping.state, AgentState::Stopping);
  EXPECT_EQ(stopping.running, assignment(1)) << "its workers still run";
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  EXPECT_FALSE(beat().running);
  assign(2, 2, 1);
  spawned(0);
  spawned(1);
  hello(0);
  hello(1);
  say(0, progress(7));
  say(1, progress(6));
  running = beat();
  EXPECT_EQ(running.restarts_spent, 1);
  EXPECT_EQ(running.progress.step, 7);
  EXPECT_EQ(running.progress.samples, 56);
  rejoin();
  HeartbeatRequest reforming = beat();
  EXPECT_EQ(reforming.state, AgentState::Reforming);
  EXPECT_FALSE(reforming.running);
  assign(3);
  exits(0, 0);
  exits(1, 0);
  EXPECT_EQ(beat().state, AgentState::Finished);
  stop_job(Outcome::Succeeded);
  EXPECT_FALSE(supervisor().next_deadline());
}

TEST_F(Time, HeartbeatsGoOutInBackoff) {
  to_backoff();
  EXPECT_LE(*supervisor().next_deadline(), now_ + seconds(1));
}

TEST_F(Time, TheIntervalIsTheOneTold) {
  start();
  step(HeartbeatAnswered{now_, seconds(3), seconds(20)});
  service_is_silent_ = true;
  advance(seconds(1));
  EXPECT_EQ(count<SendHeartbeat>(), 1U) << "the one that was planned";
  advance(milliseconds(2999));
  EXPECT_EQ(count<SendHeartbeat>(), 0U);
  advance(milliseconds(1));
  EXPECT_EQ(count<SendHeartbeat>(), 1U);
}

TEST_F(Time, AfterAFailedCallAHeartbeatGoesOutEarly) {
  to_running();
  step(ServiceUnreachable{.host_answered = true, .is_final = false, .sentence = "refused"});
  advance(milliseconds(250));
  EXPECT_EQ(count<SendHeartbeat>(), 1U);
}

// --- the fence ---------------------------------------------------------------------------------

TEST_F(Time, SilenceFencesPlainWorkersAfterTwoThirdsOfTheLease) {
  to_running();
  service_is_silent_ = true;
  advance(milliseconds(3999));
  EXPECT_EQ(state(), AgentState::Running);
  advance(milliseconds(1));
  EXPECT_EQ(state(), AgentState::Stopping);
  EXPECT_EQ(only<ReformStarted>().cause, StopCause::LeaseLost);
  EXPECT_THAT(signals(), ::testing::IsSupersetOf({Pair(0, SIGKILL), Pair(1, SIGKILL)}));
  dies(0, SIGKILL);
  dies(1, SIGKILL);
  EXPECT_EQ(state(), AgentState::Joining);
  EXPECT_FALSE(only<Join>().request.failure) << "free";
}

TEST_F(Time, TheFenceCountsFromSendingNotFromTheAnswer) {
  to_running();
  const Instant sent = now_;
  now_ += seconds(3);
  step(HeartbeatAnswered{sent, {}, {}});
  service_is_silent_ = true;
  advance(milliseconds(999));
  EXPECT_EQ(state(), AgentState::Running);
  advance(milliseconds(1));
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Time, TheFenceHoldsInStarting) {
  to_starting();
  spawned(0);
  service_is_silent_ = true;
  advance(seconds(4));
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Time, AWorkerThatWasBeingStartedWhenTheFenceCameIsKilledToo) {
  to_starting();
  spawned(0);
  service_is_silent_ = true;
  advance(seconds(4));
  spawned(1);
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGKILL)));
}

// While the service's host answers at all nobody is fenced, however long the service is away.
TEST_F(Time, AHostThatAnswersPushesTheFenceOut) {
  to_running();
  service_is_silent_ = true;
  for (int second = 0; second < 3600; ++second) {
    step(ServiceUnreachable{.host_answered = true, .is_final = false, .sentence = "refused"});
    advance(seconds(1));
  }
  EXPECT_EQ(state(), AgentState::Running);
}

TEST_F(Time, SilenceOfTheHostPushesNothing) {
  to_running();
  service_is_silent_ = true;
  step(ServiceUnreachable{.host_answered = false, .is_final = false, .sentence = "timed out"});
  advance(seconds(4));
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Time, LiveWorkersAreOnlyNotedWhenFenced) {
  to_running_live();
  service_is_silent_ = true;
  advance(seconds(100));
  EXPECT_EQ(state(), AgentState::Running);
  EXPECT_THAT(signals(), IsEmpty());
}

TEST_F(Time, TheFenceDoesNotCountWhereNothingRuns) {
  start();
  service_is_silent_ = true;
  advance(seconds(100));
  EXPECT_EQ(state(), AgentState::Joining);
}

// B048: all traffic between agent and service is dropped, then a worker fails.
TEST_F(Time, WithoutAnyServiceTheAgentGivesUpWithinItsLimit) {
  to_running();
  service_is_silent_ = true;
  step(ServiceUnreachable{
      .host_answered = false, .is_final = false, .sentence = "10.0.0.1: silent"});
  advance(seconds(4));
  dies(0, SIGKILL);
  dies(1, SIGKILL);
  ASSERT_EQ(state(), AgentState::Joining);
  advance(config_.unreachable_timeout);
  EXPECT_EQ(state(), AgentState::Done);
  EXPECT_EQ(only<Finish>().outcome, Outcome::Failed);
  EXPECT_EQ(only<Finish>().refusal->sentence, "10.0.0.1: silent");
}

TEST_F(Time, SurvivorsWithoutAServiceAreStoppedAtTheLimit) {
  to_reforming();
  service_is_silent_ = true;
  advance(config_.unreachable_timeout);
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Time, AServiceThatCanNeverBeReachedEndsOnlyAnIdleAgent) {
  const ServiceUnreachable never{
      .host_answered = true, .is_final = true, .sentence = "foreign certificate"};
  to_running();
  step(never);
  EXPECT_EQ(state(), AgentState::Running);
  rejoin();
  step(never);
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGTERM);
  dies(1, SIGTERM);
  step(never);
  EXPECT_EQ(only<Finish>().refusal->sentence, "foreign certificate");
}

// --- grace -------------------------------------------------------------------------------------

// B044: the grace is the configured one.
TEST_F(Time, AfterTheGraceTheGroupsAreKilledAndKilledAgain) {
  to_stopping();
  advance(milliseconds(9999));
  EXPECT_THAT(signals(), IsEmpty());
  advance(milliseconds(1));
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL)));
  dies(0, SIGKILL);
  advance(seconds(5));
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGKILL)));
  EXPECT_EQ(state(), AgentState::Stopping) << "new workers only after the last is reaped";
  dies(1, SIGKILL);
  EXPECT_EQ(state(), AgentState::Joining);
}

TEST_F(Time, WithoutGraceTheyAreKilledAtOnce) {
  config_.kill_grace = seconds(0);
  to_stopping();
  EXPECT_THAT(signals(),
              ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM), Pair(0, SIGKILL), Pair(1, SIGKILL)));
}

TEST_F(Time, ASurvivorThatDoesNotAnswerAbortIsKilledAndReplaced) {
  to_reforming();
  say(0, channel::Aborted{{1, 1}});
  advance(seconds(10));
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGKILL)));
  EXPECT_EQ(state(), AgentState::Reforming);
  assign(2);
  EXPECT_EQ(count<SpawnWorker>(), 0U) << "the old process is not yet reaped";
  EXPECT_EQ(state(), AgentState::Starting);
  dies(1, SIGKILL);
  EXPECT_EQ(only<SpawnWorker>().local_rank, LocalRank{1});
  spawned(1);
  EXPECT_EQ(state(), AgentState::Running);
}

TEST_F(Time, WithoutAnyAnswerToAbortTheGroupStartsAnew) {
  to_reforming();
  advance(seconds(10));
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGKILL);
  dies(1, SIGKILL);
  EXPECT_EQ(state(), AgentState::Joining);
}

TEST_F(Time, ALaggardThatWasAssignedMeanwhileIsAFailure) {
  to_reforming();
  assign(2);
  ASSERT_EQ(state(), AgentState::Running);
  say(0, channel::Aborted{{1, 1}});
  advance(seconds(10));
  EXPECT_EQ(only<FailureSeen>().cause.local_rank, LocalRank{1});
  EXPECT_EQ(state(), AgentState::Reforming);
}

// Found by the simulation (seed 306854): it was killed and nobody called that a failure, so that
// its group waited for ever.
TEST_F(Time, ALaggardThatBrokeTheGrammarMeanwhileIsAFailureToo) {
  to_reforming();
  assign(2);
  say(0, channel::Aborted{{1, 1}});
  step(WorkerGarbled{LocalRank{1}, "not JSON"});
  advance(seconds(10));
  EXPECT_THAT(signals(), ElementsAre(Pair(1, SIGKILL)));
  EXPECT_EQ(only<FailureSeen>().cause.local_rank, LocalRank{1});
  EXPECT_EQ(state(), AgentState::Reforming);
}

TEST_F(Time, ReadyForTheNextGenerationAnswersAbortToo) {
  to_reforming();
  assign(2);
  say(0, channel::Ready{{1, 2}});
  say(1, channel::Ready{{1, 2}});
  advance(seconds(20));
  EXPECT_EQ(state(), AgentState::Running);
}

// --- stalls ------------------------------------------------------------------------------------

// B088, B089: seen from outside; only the culprit is killed.
TEST_F(Time, OnlyTheStalledWorkerIsKilled) {
  config_.stall_timeout = seconds(5);
  to_running_live(1);
  say(0, progress(3));
  say(1, progress(3));
  for (int second = 0; second < 5; ++second) {
    say(1, progress(3, Activity::Waiting));
    advance(seconds(1));
  }
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGKILL)));
  EXPECT_EQ(only<FailureSeen>().cause.kind, FailureKind::Stalled);
  EXPECT_THAT(only<FailureSeen>().cause.sentence, HasSubstr("beyond step 3"));
  EXPECT_EQ(state(), AgentState::Reforming);
  EXPECT_EQ(only<Join>().request.failure->kind, FailureKind::Stalled);
  dies(0, SIGKILL);
  EXPECT_EQ(state(), AgentState::Reforming) << "its end is no second failure";
  EXPECT_EQ(count<FailureSeen>(), 0U);
}

TEST_F(Time, APlainWorkerThatStallsStopsItsGroup) {
  config_.stall_timeout = seconds(5);
  to_running(1);
  say(0, progress(3));
  advance(seconds(5));
  EXPECT_THAT(signals(), ElementsAre(Pair(0, SIGKILL), Pair(1, SIGTERM)));
  EXPECT_EQ(state(), AgentState::Stopping);
  dies(0, SIGKILL);
  dies(1, SIGTERM);
  EXPECT_EQ(only<Join>().request.failure->kind, FailureKind::Stalled);
}

TEST_F(Time, AStallInStartingStops) {
  config_.stall_timeout = seconds(5);
  to_starting(1);
  spawned(0);
  say(0, progress(1));
  advance(seconds(5));
  EXPECT_EQ(state(), AgentState::Stopping);
}

TEST_F(Time, WithoutATimeOutSilenceIsNoStall) {
  to_running(1);
  say(0, progress(3));
  advance(seconds(10000));
  EXPECT_EQ(state(), AgentState::Running);
}

TEST_F(Time, StallsAreNotLookedForWhileReforming) {
  config_.stall_timeout = seconds(5);
  to_running_live();
  say(0, progress(3));
  rejoin();
  say(0, channel::Aborted{{1, 1}});
  say(1, channel::Aborted{{1, 1}});
  advance(seconds(60));
  EXPECT_EQ(state(), AgentState::Reforming);
  assign(2);
  advance(seconds(60));
  EXPECT_EQ(state(), AgentState::Running) << "nothing was reported in the new generation";
}

}  // namespace
}  // namespace lrun::agent
