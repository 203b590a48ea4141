#include "agent/stall_detector.h"

#include <gtest/gtest.h>

namespace lrun::agent {
namespace {

using channel::Activity;
using std::chrono::seconds;

const Instant kStart{};

channel::Progress at_step(std::int64_t step, Activity activity) {
  return channel::Progress{.step = step, .activity = activity, .peer = {}};
}

TEST(StallDetector, WatchesNobodyWithoutATimeOut) {
  StallDetector detector;
  detector.note(kStart, at_step(1, Activity::Computing));
  EXPECT_FALSE(detector.deadline());
}

TEST(StallDetector, WatchesOnlyWhoHasReported) {
  EXPECT_FALSE(StallDetector(seconds(10)).deadline());
}

TEST(StallDetector, AComputingWorkerStallsWhenItsStepDoesNotAdvance) {
  StallDetector detector(seconds(10));
  detector.note(kStart, at_step(1, Activity::Computing));
  for (int second = 1; second < 10; ++second) {
    detector.note(kStart + seconds(second), at_step(1, Activity::Computing));
    EXPECT_FALSE(detector.is_stalled(kStart + seconds(second)));
  }
  EXPECT_TRUE(detector.is_stalled(kStart + seconds(10)));
  detector.note(kStart + seconds(10), at_step(2, Activity::Computing));
  EXPECT_FALSE(detector.is_stalled(kStart + seconds(19)));
}

// B102: the others wait while rank 0 saves for longer than the time-out; nobody hangs.
TEST(StallDetector, WhoWaitsOrSavesAndSaysSoHasPatience) {
  for (const Activity activity : {Activity::Waiting, Activity::Saving}) {
    StallDetector detector(seconds(10));
    for (int second = 0; second < 99; ++second) {
      detector.note(kStart + seconds(second), at_step(1, activity));
      EXPECT_FALSE(detector.is_stalled(kStart + seconds(second)));
    }
    EXPECT_TRUE(detector.is_stalled(kStart + seconds(100))) << "patience has an end";
  }
}

// B089: stopped by SIGSTOP while it waited; it says nothing any more.
TEST(StallDetector, ASilentWorkerStallsWhateverItSaidLast) {
  StallDetector detector(seconds(10));
  detector.note(kStart, at_step(1, Activity::Waiting));
  detector.note(kStart + seconds(2), at_step(1, Activity::Waiting));
  EXPECT_FALSE(detector.is_stalled(kStart + seconds(9)));
  EXPECT_TRUE(detector.is_stalled(kStart + seconds(10)));
}

TEST(StallDetector, AShortTimeOutStillAllowsForTheIntervalOfReports) {
  StallDetector detector(seconds(1));
  detector.note(kStart, at_step(1, Activity::Waiting));
  EXPECT_FALSE(detector.is_stalled(kStart + seconds(2)));
  EXPECT_TRUE(detector.is_stalled(kStart + StallDetector::kSilence));
}

}  // namespace
}  // namespace lrun::agent
