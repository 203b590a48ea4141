// Reading the words of a scenario's command: durations, numbers, workers. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "proto/ids.h"
#include "tests/sim/scenario.h"

namespace lrun::sim {

// "250ms", "30s", "2m". Each function throws ScenarioError for anything else than it names.
Duration duration_of(const std::string& text);
int number_of(const std::string& text);
double share_of(const std::string& text);  // "0.25"
// "2:4" is two to four, "3" exactly three.
std::pair<int, int> range_of(const std::string& text);
// "a/3": local rank 3 of node a.
std::pair<std::string, int> worker_of(const std::string& text);

// The word at this place of the command.
const std::string& word_at(const ScenarioCommand& command, std::size_t place,
                           const std::string& meaning);
std::optional<std::string> option_of(const ScenarioCommand& command, const std::string& key);
// Throws for an option that is not one of these.
void accept_options(const ScenarioCommand& command, const std::set<std::string>& accepted);

}  // namespace lrun::sim
