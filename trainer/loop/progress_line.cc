#include "trainer/loop/progress_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

namespace lrun::loop {
namespace {

constexpr int kBarCells = 24;
constexpr std::string_view kColourOn = "\033[36m";
constexpr std::string_view kColourOff = "\033[0m";

std::string loss_text(double loss) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f", loss);
  return text.data();
}

std::string of(std::int64_t part, std::int64_t whole) {
  return std::to_string(part) + "/" + std::to_string(whole);
}

// The bar's filled and empty part, each cell one column.
std::pair<std::string, std::string> bar_of(const ProgressState& state) {
  const double done =
      state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  const auto filled = static_cast<std::size_t>(std::clamp(done, 0.0, 1.0) * kBarCells);
  return {std::string(filled, '#'), std::string(kBarCells - filled, '.')};
}

}  // namespace

std::string plain_line(const ProgressState& state) {
  std::string line = "epoch " + of(std::min(state.epoch + 1, state.epochs), state.epochs) +
                     ", step " + of(state.step, state.steps) + ", loss " + loss_text(state.loss);
  if (state.samples_per_second <= 0) return line;
  return line + ", " + with_separators(std::llround(state.samples_per_second)) + " samples/s, " +
         duration_text(state.seconds_left) + " left";
}

std::string bar_line(const ProgressState& state, int columns, bool has_colour) {
  const std::string text = plain_line(state);
  const int bar_columns = kBarCells + 3;
  if (static_cast<int>(text.size()) + bar_columns > columns) {
    return text.substr(0, static_cast<std::size_t>(std::max(columns, 0)));
  }
  const auto [filled, empty] = bar_of(state);
  std::string line(1, '[');
  if (has_colour) line += kColourOn;
  line += filled;
  if (has_colour) line += kColourOff;
  return line + empty + "] " + text;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::clamp(std::ceil(seconds), 0.0, 1e9));
  std::array<char, 64> text{};
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld", whole / 60, whole % 60);
  }
  return text.data();
}

std::string with_separators(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::int64_t first = value < 0 ? 1 : 0;
  for (auto i = static_cast<std::int64_t>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return digits;
}

}  // namespace lrun::loop
