#include "trainer/loop/batch_limit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lrun::loop {

std::int64_t limited(const BatchLimit& limit, std::int64_t available) {
  if (!limit.is_fraction) return std::min(static_cast<std::int64_t>(limit.value), available);
  if (limit.value == 0 || available == 0) return 0;
  const double exact = limit.value * static_cast<double>(available);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(exact)), 1, available);
}

bool parse_batch_limit(const std::string& text, BatchLimit* limit) {
  const char* first = text.data();
  const char* last = first + text.size();
  std::int64_t count = 0;
  if (const auto parsed = std::from_chars(first, last, count);
      parsed.ec == std::errc() && parsed.ptr == last) {
    if (count < 0 || count > (std::int64_t{1} << 52)) return false;
    *limit = {.is_fraction = false, .value = static_cast<double>(count)};
    return true;
  }
  double fraction = 0;
  const auto parsed = std::from_chars(first, last, fraction);
  if (parsed.ec != std::errc() || parsed.ptr != last || !(fraction >= 0 && fraction <= 1))
    return false;
  *limit = {.is_fraction = true, .value = fraction};
  return true;
}

std::string to_string(const BatchLimit& limit) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), limit.value);
  std::string spelled{text.data(), end};
  // 1 is one batch, 1.0 all of them.
  if (limit.is_fraction && spelled.find_first_of(".e") == std::string::npos) spelled += ".0";
  return spelled;
}

}  // namespace lrun::loop
