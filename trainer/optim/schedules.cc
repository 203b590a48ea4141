#include "trainer/optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace lrun::optim {
namespace {

// How much of the steps after warm-up is over, 0 … 1.
double decay_progress(const Schedule& schedule, std::int64_t step) {
  const auto done = static_cast<double>(step - schedule.warmup_steps);
  const auto all = static_cast<double>(schedule.total_steps - schedule.warmup_steps);
  return std::clamp(done / all, 0.0, 1.0);
}

double factor(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps) {
    return static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  }
  switch (schedule.kind) {
    case ScheduleKind::Constant:
      return 1;
    case ScheduleKind::Linear:
      return std::max(schedule.floor, 1 - decay_progress(schedule, step));
    case ScheduleKind::Cosine: {
      const double angle = std::numbers::pi * 2 * schedule.cycles * decay_progress(schedule, step);
      return schedule.floor + (1 - schedule.floor) * 0.5 * (1 + std::cos(angle));
    }
  }
  throw std::logic_error("a schedule kind without a formula");
}

}  // namespace

double learning_rate(const Schedule& schedule, std::int64_t step) {
  return schedule.rate * factor(schedule, step);
}

void validate(const Schedule& schedule) {
  if (!std::isfinite(schedule.rate) || schedule.rate < 0) {
    throw std::invalid_argument("learning rate " + std::to_string(schedule.rate) +
                                " is not usable: give a finite number that is not negative");
  }
  if (schedule.warmup_steps < 0) {
    throw std::invalid_argument("warm-up of " + std::to_string(schedule.warmup_steps) +
                                " steps is not possible: give 0 or more");
  }
  if (!(schedule.floor >= 0 && schedule.floor <= 1)) {
    throw std::invalid_argument("schedule floor " + std::to_string(schedule.floor) +
                                " is not a fraction of the learning rate: give 0 to 1");
  }
  const bool decays = schedule.kind != ScheduleKind::Constant;
  if (decays && schedule.total_steps <= schedule.warmup_steps) {
    throw std::invalid_argument("schedule '" + to_string(schedule.kind) + "' with " +
                                std::to_string(schedule.total_steps) + " steps and a warm-up of " +
                                std::to_string(schedule.warmup_steps) +
                                " has nothing to decay over: give more steps or less warm-up");
  }
}

ScheduleKind schedule_kind(std::string_view name) {
  for (const auto kind : {ScheduleKind::Constant, ScheduleKind::Linear, ScheduleKind::Cosine}) {
    if (name == to_string(kind)) return kind;
  }
  throw std::invalid_argument("unknown schedule '" + std::string(name) +
                              "': use constant, linear or cosine");
}

std::string to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::Constant:
      return "constant";
    case ScheduleKind::Linear:
      return "linear";
    case ScheduleKind::Cosine:
      return "cosine";
  }
  throw std::logic_error("a schedule kind without a name");
}

}  // namespace lrun::optim
