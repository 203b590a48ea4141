// The text of the progress line.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

namespace lrun::loop {

struct ProgressState {
  std::int64_t epoch = 0;  // counted from 0; shown from 1
  std::int64_t epochs = 0;
  std::int64_t step = 0;   // optimizer steps done
  std::int64_t steps = 0;  // of the whole run
  double loss = 0;         // of the last step
  double samples_per_second = 0;
  double seconds_left = 0;
};

// "epoch 1/2, step 120/626, loss 0.5123, 9,800 samples/s, 0:25 left"
std::string plain_line(const ProgressState& state);
// The same with a bar, at most `columns` wide.
std::string bar_line(const ProgressState& state, int columns, bool has_colour);
// "1:02:03", "0:25"
std::string duration_text(double seconds);
// "12,345"
std::string with_separators(std::int64_t value);

}  // namespace lrun::loop
