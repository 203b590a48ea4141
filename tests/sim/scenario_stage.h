// The world of one scenario and the commands it understands.
//
// Owns the world and how far its log was read. The table of commands is at the end of the .cc file;
// tests/scenarios/README.md describes them for authors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

namespace lrun::sim {

class Stage {
 public:
  // Throws ScenarioError for a command that does not exist or cannot be obeyed.
  void perform(const ScenarioCommand& command);

  // What has happened since the last call, times in milliseconds.
  std::vector<std::string> take_new_lines();
  std::vector<std::string> take_new_violations();

 private:
  // The world begins with the first command that needs one.
  World& world();

  void set_up_job(const ScenarioCommand& command);
  void set_up_workers(const ScenarioCommand& command);
  void join(const ScenarioCommand& command);
  void advance(const ScenarioCommand& command);
  void end_worker(const ScenarioCommand& command);
  void change_weather(const ScenarioCommand& command);
  void kill(const ScenarioCommand& command);
  void partition(const ScenarioCommand& command);
  void show_status(const ScenarioCommand& command);
  void disturb(const ScenarioCommand& command);

  World::Options options_;
  std::optional<World> world_;
  std::size_t lines_taken_ = 0;
  std::size_t violations_taken_ = 0;
  std::vector<std::string> said_;  // lines of the stage itself: status
};

}  // namespace lrun::sim
