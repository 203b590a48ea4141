// A scenario: a story of a job in a few commands, with what they led to recorded below each.
//
//     # Two nodes form a group.            comments and empty lines are kept
//     job nodes=2:2                        a command at the beginning of a line
//     join a slots=2
//         [   0.000] a: joins …            what it led to, indented: recorded, never written by
//         hand
//
// Owns the format and the commands. Refuses to know files: it turns text into text. Played in a
// simulated world, so the same commands always lead to the same lines. Called by scenario_test.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::sim {

// The author's mistake: names the line, what is wrong with it and what is accepted.
class ScenarioError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "exit a/3 code=1": the verb, the words that follow, and options of the form key=value.
struct ScenarioCommand {
  std::string verb;
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
};
ScenarioCommand parse_command(const std::string& line);

// Plays the commands of a scenario and returns it with fresh recordings. What must never happen in
// a world is recorded as a line that begins with "VIOLATION". Throws ScenarioError.
std::string play(std::string_view scenario);

// The lines that begin with "VIOLATION".
std::vector<std::string> violations_in(std::string_view played);

}  // namespace lrun::sim
