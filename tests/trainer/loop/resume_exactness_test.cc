// The same weights and the same logs: any number of workers, killed or not (trainer.md §3.12).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/trainer/data/idx_writer.h"
#include "tests/trainer/loop/event_file.h"
#include "tests/trainer/loop/small_run.h"
#include "trainer/loop/errors.h"

namespace lrun::loop {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kStepsOfAll = 15;  // 3 epochs of 5 global batches

// One undisturbed run of one worker; everything else is compared with it. In processes of their
// own: this one must not compute before it forks.
struct Undisturbed {
  Undisturbed() {
    weights = weights_of_world(1, {.folder = folder.path()});
    metrics = data::read_file(folder.path() / "metrics.csv");
    events = read_event_file(folder.path() / "events.out.tfevents.lrun");
  }
  data::TemporaryFolder folder;
  std::string weights;
  std::string metrics;
  std::vector<LoggedEvent> events;
};

const Undisturbed& undisturbed() {
  static const Undisturbed run;
  return run;
}

void expect_same(const std::string& weights, const std::filesystem::path& folder) {
  EXPECT_EQ(weights, undisturbed().weights);
  EXPECT_EQ(data::read_file(folder / "metrics.csv"), undisturbed().metrics);
  const std::vector<LoggedEvent> events = read_event_file(folder / "events.out.tfevents.lrun");
  ASSERT_EQ(events.size(), undisturbed().events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].step, undisturbed().events[i].step);
    EXPECT_EQ(events[i].tags(), undisturbed().events[i].tags());
    EXPECT_EQ(events[i].value("train_loss"), undisturbed().events[i].value("train_loss"));
  }
}

// Kills global rank `victim` of the world after its step, again and again, then lets it finish.
std::string with_kills(int world_size, SmallRun run, std::vector<std::int64_t> kill_after) {
  for (const std::int64_t fatal : kill_after) {
    SmallRun doomed = run;
    doomed.after_step = [fatal](std::int64_t step) {
      if (step == fatal) ::kill(::getpid(), SIGKILL);
    };
    EXPECT_THROW(weights_of_world(world_size, doomed), std::runtime_error);
  }
  return weights_of_world(world_size, run);
}

TEST(ResumeExactness, LogsHaveEveryStepOnce) {
  const std::string& metrics = undisturbed().metrics;
  EXPECT_THAT(metrics, HasSubstr("epoch,step,train_loss,grad_norm,lr,val_loss,val_accuracy\n"));
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 1 + 7 + 2);  // even steps; 5 and 15
  EXPECT_EQ(undisturbed().events.back().step, kStepsOfAll);
}

TEST(ResumeExactness, SameWeightsForEveryWorldSizeAndStage) {
  for (const int world_size : {1, 2, 3, 4}) {
    for (const int zero_stage : {0, 1}) {
      const data::TemporaryFolder folder;
      SCOPED_TRACE(std::to_string(world_size) + " workers, stage " + std::to_string(zero_stage));
      expect_same(weights_of_world(world_size, {.folder = folder.path(), .zero_stage = zero_stage}),
                  folder.path());
    }
  }
}

// Lightning#17543, #18098, #850, meta-pytorch/data#1437: killed before the first checkpoint, within
// an epoch, at its last step (before its checkpoint), and as a resume of a resume.
TEST(ResumeExactness, KilledRunsEndAsIfNothingHadHappened) {
  const data::TemporaryFolder folder;
  expect_same(with_kills(1, {.folder = folder.path()}, {1, 6, 7, 10, 15}), folder.path());
}

TEST(ResumeExactness, KilledWorkersOfAWorldEndAsIfNothingHadHappened) {
  for (const int zero_stage : {0, 1}) {
    const data::TemporaryFolder folder;
    expect_same(with_kills(3, {.folder = folder.path(), .zero_stage = zero_stage}, {3, 11}),
                folder.path());
  }
}

// B107: another number of workers in each life.
TEST(ResumeExactness, B107_WorldSizeMayChangeWithEveryLife) {
  const data::TemporaryFolder folder;
  SmallRun doomed{.folder = folder.path()};
  for (const auto& [world_size, fatal] : {std::pair{4, 6}, std::pair{2, 9}, std::pair{1, 13}}) {
    doomed.after_step = [fatal = fatal](std::int64_t step) {
      if (step == fatal) ::kill(::getpid(), SIGKILL);
    };
    EXPECT_THROW(weights_of_world(world_size, doomed), std::runtime_error);
  }
  expect_same(weights_of_world(3, {.folder = folder.path(), .zero_stage = 1}), folder.path());
}

TEST(ResumeExactness, AFinishedRunTrainsNothingAndTestsAgain) {
  const data::TemporaryFolder folder;
  weights_of_world(1, {.folder = folder.path()});
  expect_same(weights_of_world(2, {.folder = folder.path()}), folder.path());
}

TEST(ResumeExactness, AnotherSeedIsRefused) {
  const data::TemporaryFolder folder;
  weights_of_world(1, {.folder = folder.path()});
  try {
    weights_of_world(1, {.folder = folder.path(), .seed = 6});
    FAIL() << "the run went on with another seed";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("seed was 5 and is 6"));
  }
}

// vllm-project/speculators#1120: a step that is not finite changes nothing and names itself.
TEST(ResumeExactness, ANormThatIsNotFiniteStopsTheRun) {
  const data::TemporaryFolder folder;
  try {
    weights_of_world(1, {.folder = folder.path(), .learning_rate = 1e38});
    FAIL() << "the run went on";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not finite at step"));
  }
}

}  // namespace
}  // namespace lrun::loop
