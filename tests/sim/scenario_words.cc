#include "tests/sim/scenario_words.h"

#include <charconv>

namespace lrun::sim {
namespace {

// The whole text as a number that does not begin with '-'.
std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Duration duration_of(const std::string& text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789");
  const auto value = digits(std::string_view(text).substr(0, unit_at));
  const std::string unit = unit_at == std::string::npos ? "" : text.substr(unit_at);
  if (value && unit == "ms") return std::chrono::milliseconds(*value);
  if (value && unit == "s") return std::chrono::seconds(*value);
  if (value && unit == "m") return std::chrono::minutes(*value);
  throw ScenarioError("'" + text + "' is no duration; write 250ms, 30s or 2m");
}

int number_of(const std::string& text) {
  if (const auto value = digits(text)) return *value;
  throw ScenarioError("'" + text + "' is no number");
}

double share_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1) {
    return value;
  }
  throw ScenarioError("'" + text + "' is no share; write a number between 0 and 1");
}

std::pair<int, int> range_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {number_of(text), number_of(text)};
  return {number_of(text.substr(0, colon)), number_of(text.substr(colon + 1))};
}

std::pair<std::string, int> worker_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw ScenarioError("'" + text + "' is no worker; write node/local rank, as a/3");
  }
  return {text.substr(0, slash), number_of(text.substr(slash + 1))};
}

const std::string& word_at(const ScenarioCommand& command, std::size_t place,
                           const std::string& meaning) {
  if (place < command.words.size()) return command.words[place];
  throw ScenarioError("'" + command.verb + "' needs " + meaning);
}

std::optional<std::string> option_of(const ScenarioCommand& command, const std::string& key) {
  const auto found = command.options.find(key);
  return found == command.options.end() ? std::nullopt : std::optional(found->second);
}

void accept_options(const ScenarioCommand& command, const std::set<std::string>& accepted) {
  for (const auto& [key, value] : command.options) {
    if (accepted.count(key) > 0) continue;
    std::string all;
    for (const std::string& option : accepted) all += " " + option;
    throw ScenarioError("unknown option '" + key + "' of '" + command.verb +
                        "'; accepted are:" + all);
  }
}

}  // namespace lrun::sim
