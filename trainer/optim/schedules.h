// Learning rates as pure functions of the optimizer step.
//
// Pure: no state, so nothing to save, nothing to step once too often. Called by trainer/loop. After
// the last step the last value holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::optim {

enum class ScheduleKind { Constant, Linear, Cosine };

// Warm-up rises from 0: lr(s) = rate · s / warmup_steps for s < warmup_steps. Then, with
// x = (s − warmup_steps) / (total_steps − warmup_steps) held at 1:
//   Constant  rate
//   Linear    rate · max(floor, 1 − x)
//   Cosine    rate · (floor + (1 − floor) · ½ (1 + cos(π · 2 · cycles · x)))
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  double rate = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // needed by Linear and Cosine; more than warmup_steps
  double floor = 0;              // lowest fraction of `rate`, 0 … 1
  double cycles = 0.5;           // Cosine: ½ is one descent
};

// The learning rate of optimizer step `step` = 0, 1, ….
double learning_rate(const Schedule& schedule, std::int64_t step);

// Throws std::invalid_argument: one line that names the value and what is accepted.
void validate(const Schedule& schedule);

// "constant", "linear", "cosine"; throws std::invalid_argument for any other name.
ScheduleKind schedule_kind(std::string_view name);
std::string to_string(ScheduleKind kind);

}  // namespace lrun::optim
