#include "trainer/optim/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace lrun::optim {
namespace {

TEST(Schedules, ConstantHolds) {
  const Schedule schedule{.rate = 0.1};
  EXPECT_EQ(learning_rate(schedule, 0), 0.1);
  EXPECT_EQ(learning_rate(schedule, 1'000'000), 0.1);
}

TEST(Schedules, WarmUpRisesFromZeroInEveryKind) {
  for (const auto kind : {ScheduleKind::Constant, ScheduleKind::Linear, ScheduleKind::Cosine}) {
    const Schedule schedule{.kind = kind, .rate = 2, .warmup_steps = 4, .total_steps = 20};
    EXPECT_EQ(learning_rate(schedule, 0), 0.0);
    EXPECT_EQ(learning_rate(schedule, 1), 0.5);
    EXPECT_EQ(learning_rate(schedule, 3), 1.5);
    EXPECT_EQ(learning_rate(schedule, 4), 2.0);
  }
}

// max(0, (T − s) / (T − W)), as get_linear_schedule_with_warmup of Hugging Face transformers.
TEST(Schedules, LinearFallsToZeroAndStaysThere) {
  const Schedule schedule{
      .kind = ScheduleKind::Linear, .rate = 1, .warmup_steps = 10, .total_steps = 110};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 35), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 110), 0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5000), 0);
}

TEST(Schedules, CosineFollowsItsFormula) {
  const Schedule schedule{
      .kind = ScheduleKind::Cosine, .rate = 1, .warmup_steps = 0, .total_steps = 100, .floor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 50), 0.1 + 0.9 * 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 30),
                   0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * 0.3)));
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 100), 0.1);
}

// pytorch/pytorch#65417: beyond its end the last value holds, it does not wrap.
TEST(Schedules, CosineHoldsItsLastValue) {
  const Schedule schedule{.kind = ScheduleKind::Cosine, .rate = 1, .total_steps = 10};
  EXPECT_EQ(learning_rate(schedule, 10), learning_rate(schedule, 15));
}

TEST(Schedules, NamesReadBack) {
  for (const auto kind : {ScheduleKind::Constant, ScheduleKind::Linear, ScheduleKind::Cosine}) {
    EXPECT_EQ(schedule_kind(to_string(kind)), kind);
  }
  EXPECT_THROW(schedule_kind("cosin"), std::invalid_argument);
}

std::string complaint(const Schedule& schedule) {
  try {
    validate(schedule);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(Schedules, MistakesAreNamed) {
  EXPECT_EQ(complaint({.rate = 0.1}), "");
  EXPECT_THAT(complaint({.rate = NAN}), testing::HasSubstr("learning rate nan"));
  EXPECT_THAT(complaint({.rate = -1}), testing::HasSubstr("learning rate"));
  EXPECT_THAT(complaint({.warmup_steps = -1}), testing::HasSubstr("warm-up of -1"));
  EXPECT_THAT(complaint({.floor = 2}), testing::HasSubstr("floor"));
  EXPECT_THAT(complaint({.kind = ScheduleKind::Linear, .warmup_steps = 5, .total_steps = 5}),
              testing::HasSubstr("nothing to decay over"));
}

}  // namespace
}  // namespace lrun::optim
