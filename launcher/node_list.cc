#include "launcher/node_list.h"

#include <charconv>

namespace lrun::launcher {
namespace {

using Names = std::vector<std::string>;

std::optional<unsigned long> to_number(std::string_view text) {
  unsigned long number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// "1-3,7" or "08-10": the width of the first number is kept.
std::optional<Names> expand_ranges(std::string_view text) {
  Names numbers;
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    const std::size_t dash = one.find('-');
    const std::string_view low_text = one.substr(0, dash);
    const std::string_view high_text =
        dash == std::string_view::npos ? low_text : one.substr(dash + 1);
    const auto low = to_number(low_text);
    const auto high = to_number(high_text);
    if (!low || !high || *high < *low || *high - *low >= kHostsMax) return std::nullopt;
    for (unsigned long number = *low; number <= *high; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < low_text.size()) digits.insert(0, low_text.size() - digits.size(), '0');
      numbers.push_back(std::move(digits));
    }
    if (numbers.size() > kHostsMax) return std::nullopt;
    if (one.size() == text.size()) return numbers;
    text.remove_prefix(one.size() + 1);
  }
}

std::optional<Names> product(const Names& heads, const Names& tails) {
  if (heads.size() * tails.size() > kHostsMax) return std::nullopt;
  Names out;
  for (const std::string& head : heads) {
    for (const std::string& tail : tails) out.push_back(head + tail);
  }
  return out;
}

// One element: text and brackets in turns; nothing may follow the last bracket.
std::optional<Names> expand_element(std::string_view text) {
  Names names{""};
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    for (std::string& name : names) name += text.substr(0, open);
    if (open == std::string_view::npos) {
      return names.front().size() == text.size() ? std::optional(names) : std::nullopt;
    }
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto numbers = expand_ranges(text.substr(open + 1, close - open - 1));
    if (!numbers) return std::nullopt;
    auto more = product(names, *numbers);
    if (!more) return std::nullopt;
    names = std::move(*more);
    text.remove_prefix(close + 1);
  }
  return names;
}

// The position of the comma that ends the first element, outside brackets.
std::size_t end_of_element(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

}  // namespace

std::optional<Names> expand_node_list(std::string_view text) {
  Names hosts;
  while (!text.empty()) {
    const std::size_t end = end_of_element(text);
    const auto names = end == 0 ? std::nullopt : expand_element(text.substr(0, end));
    if (!names || hosts.size() + names->size() > kHostsMax) return std::nullopt;
    hosts.insert(hosts.end(), names->begin(), names->end());
    if (end + 1 == text.size()) return std::nullopt;  // a comma with nothing behind it
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (hosts.empty()) return std::nullopt;
  return hosts;
}

std::optional<std::vector<int>> expand_counts(std::string_view text) {
  std::vector<int> counts;
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    unsigned long times = 1;
    if (const std::size_t open = one.find("(x"); open != std::string_view::npos) {
      const auto repeat = to_number(one.substr(open + 2, one.size() - open - 3));
      if (one.back() != ')' || !repeat) return std::nullopt;
      times = *repeat;
      one = one.substr(0, open);
    }
    const auto count = to_number(one);
    if (!count || *count > kHostsMax || counts.size() + times > kHostsMax) return std::nullopt;
    counts.insert(counts.end(), times, static_cast<int>(*count));
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

}  // namespace lrun::launcher
