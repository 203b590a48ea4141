// Plays every scenario and compares it with its recording.
//
//     scenario_test             each file of tests/scenarios is one test
//     scenario_test --rewrite   records anew; the reviewer reads the difference
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/sim/scenario.h"
#include "tests/sim/scenario_words.h"

namespace lrun::sim {
namespace {

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LRUN_SCENARIO_FOLDER)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Scenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Scenario, IsPlayedAsRecorded) {
  const std::string recorded = read(GetParam());
  const std::string played = play(recorded);
  EXPECT_THAT(violations_in(played), testing::IsEmpty());
  EXPECT_EQ(played, recorded)
      << "if the change is wanted: scenario_test --rewrite, read the difference";
}

TEST_P(Scenario, HasARecording) { EXPECT_NE(read(GetParam()).find("\n    ["), std::string::npos); }

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(scenario_files()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char symbol) { return !std::isalnum(symbol); }, '_');
  return name;
});

TEST(ScenarioFormat, SplitsACommandIntoWordsAndOptions) {
  const ScenarioCommand command = parse_command("exit a/3 code=1");
  EXPECT_EQ(command.verb, "exit");
  EXPECT_THAT(command.words, testing::ElementsAre("a/3"));
  EXPECT_THAT(command.options, testing::ElementsAre(testing::Pair("code", "1")));
}

TEST(ScenarioFormat, KeepsCommentsAndReplacesRecordings) {
  const std::string played =
      play("# Alone.\n\njob nodes=1\njoin a\n    [9.9] nonsense\nadvance 1s\n");
  EXPECT_EQ(played.rfind("# Alone.\n\njob nodes=1\njoin a\n", 0), 0u) << played;
  EXPECT_EQ(played.find("nonsense"), std::string::npos) << played;
  EXPECT_NE(played.find("Forming -> Active"), std::string::npos) << played;
  EXPECT_EQ(play(played), played) << "a recording leads to itself";
}

TEST(ScenarioFormat, ReadsDurationsRangesAndWorkers) {
  EXPECT_EQ(duration_of("250ms"), std::chrono::milliseconds(250));
  EXPECT_EQ(duration_of("2m"), std::chrono::minutes(2));
  EXPECT_EQ(range_of("2:4"), std::pair(2, 4));
  EXPECT_EQ(range_of("3"), std::pair(3, 3));
  EXPECT_EQ(worker_of("n1/2"), std::pair(std::string("n1"), 2));
}

TEST(ScenarioFormat, NamesTheMistakeAndItsLine) {
  const auto mistake = [](const std::string& scenario) -> std::string {
    try {
      play(scenario);
    } catch (const ScenarioError& error) {
      return error.what();
    }
    return "no mistake was found";
  };
  using testing::HasSubstr;
  EXPECT_THAT(mistake("# first\nfrobnicate a\n"),
              HasSubstr("line 2 'frobnicate a': unknown command"));
  EXPECT_THAT(mistake("advance soon\n"), HasSubstr("'soon' is no duration"));
  EXPECT_THAT(mistake("join a colour=red\n"), HasSubstr("unknown option 'colour'"));
  EXPECT_THAT(mistake("kill agent b\n"), HasSubstr("agent b is not there"));
  EXPECT_THAT(mistake("join a\njob nodes=2\n"), HasSubstr("'job' comes before"));
  EXPECT_THAT(mistake("exit a code=1\n"), HasSubstr("'a' is no worker"));
}

int rewrite() {
  for (const auto& path : scenario_files()) {
    const std::string played = play(read(path));
    std::ofstream(path) << played;
    for (const std::string& violation : violations_in(played)) {
      std::cerr << path.filename().string() << ": " << violation << "\n";
    }
  }
  return 0;
}

}  // namespace
}  // namespace lrun::sim

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--rewrite") == 0) {
    try {
      return lrun::sim::rewrite();
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      return 2;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
