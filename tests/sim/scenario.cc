#include "tests/sim/scenario.h"

#include <sstream>

#include "tests/sim/scenario_stage.h"

namespace lrun::sim {
namespace {

constexpr std::string_view kIndent = "    ";
constexpr std::string_view kViolation = "VIOLATION ";

bool is_recorded(const std::string& line) { return line.rfind(kIndent, 0) == 0; }
bool is_commentary(const std::string& line) { return line.empty() || line.front() == '#'; }

}  // namespace

ScenarioCommand parse_command(const std::string& line) {
  ScenarioCommand command;
  std::istringstream words(line);
  words >> command.verb;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      command.words.push_back(word);
    } else {
      command.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return command;
}

std::string play(std::string_view scenario) {
  Stage stage;
  std::istringstream lines{std::string(scenario)};
  std::string played;
  int line_number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++line_number;
    if (is_recorded(line)) continue;
    played.append(line).append("\n");
    if (is_commentary(line)) continue;
    try {
      stage.perform(parse_command(line));
    } catch (const ScenarioError& error) {
      throw ScenarioError("line " + std::to_string(line_number) + " '" + line +
                          "': " + error.what());
    }
    for (const std::string& happened : stage.take_new_lines()) {
      played.append(kIndent).append(happened).append("\n");
    }
    for (const std::string& violation : stage.take_new_violations()) {
      played.append(kIndent).append(kViolation).append(violation).append("\n");
    }
  }
  return played;
}

std::vector<std::string> violations_in(std::string_view played) {
  std::vector<std::string> found;
  std::istringstream lines{std::string(played)};
  for (std::string line; std::getline(lines, line);) {
    if (is_recorded(line) && line.compare(kIndent.size(), kViolation.size(), kViolation) == 0) {
      found.push_back(line.substr(kIndent.size()));
    }
  }
  return found;
}

}  // namespace lrun::sim
