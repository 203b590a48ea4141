#include "launcher/option_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kTable = std::to_array<OptionSpec>({
    {"nnodes", OptionKind::Value, 0, "N", "1:1", "Nodes.", "", true},
    {"nproc-per-node", OptionKind::Value, 0, "N", "1", "Workers.", "nproc", true},
    {"node-rank", OptionKind::Value, 0, "N", "0", "Rank.", "", true},
    {"redirects", OptionKind::Value, 'r', "S", "0", "Streams.", "", true},
    {"standalone", OptionKind::Switch, 0, "", "", "Alone.", "", true},
    {"lease", OptionKind::Value, 0, "S", "5", "Lease.", "", false},
});

CommandLine accepted(std::vector<std::string> words, const Environment& environment = {}) {
  auto parsed = parse_command_line(kTable, words, environment);
  if (auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->sentence;
  return std::get<CommandLine>(parsed);
}

std::string refused(std::vector<std::string> words, const Environment& environment = {}) {
  auto parsed = parse_command_line(kTable, words, environment);
  auto* error = std::get_if<UsageError>(&parsed);
  return error == nullptr ? "accepted" : error->sentence;
}

TEST(OptionParser, TakesBothSpellingsAndBothForms) {
  EXPECT_EQ(accepted({"--nproc-per-node=2", "p"}).options.text("nproc-per-node"), "2");
  EXPECT_EQ(accepted({"--nproc_per_node", "2", "p"}).options.text("nproc-per-node"), "2");
  EXPECT_EQ(accepted({"--nproc", "3", "p"}).options.text("nproc-per-node"), "3");
}

TEST(OptionParser, TakesUnambiguousPrefixes) {
  const CommandLine line = accepted({"--stand", "--nn", "2", "p"});
  EXPECT_TRUE(line.options.is_on("standalone"));
  EXPECT_EQ(line.options.text("nnodes"), "2");
  EXPECT_THAT(refused({"--n", "2", "p"}), HasSubstr("ambiguous"));
}

TEST(OptionParser, LastOneGivenWins) {
  EXPECT_EQ(accepted({"--lease", "2", "--lease=1", "p"}).options.text("lease"), "1");
}

TEST(OptionParser, TakesLettersWithAndWithoutBlank) {
  EXPECT_EQ(accepted({"-r3", "p"}).options.text("redirects"), "3");
  EXPECT_EQ(accepted({"-r", "3", "p"}).options.text("redirects"), "3");
}

// B076: everything after the program reaches it verbatim.
TEST(OptionParser, StopsAtTheProgram) {
  const CommandLine line =
      accepted({"--nproc=1", "w_args", "--log", "x", "--r=16", "--nnodes", "7", "--help"});
  EXPECT_THAT(line.program,
              ElementsAre("w_args", "--log", "x", "--r=16", "--nnodes", "7", "--help"));
  EXPECT_EQ(line.options.text("nnodes"), "1:1");
  EXPECT_THAT(accepted({"--", "--odd-name", "x"}).program, ElementsAre("--odd-name", "x"));
}

TEST(OptionParser, NamesTheNearestOption) {
  EXPECT_THAT(refused({"--nodes=2", "p"}), HasSubstr("did you mean --nnodes?"));
  EXPECT_THAT(refused({"--stadnalone", "p"}), HasSubstr("did you mean --standalone?"));
  EXPECT_THAT(refused({"--xyzzy", "p"}), HasSubstr("lrun --help"));
  EXPECT_THAT(refused({"--lease"}), HasSubstr("needs a value"));
}

TEST(OptionParser, EachPlaceWinsOverTheNext) {
  const Environment both{{"PET_NNODES", "2"}, {"LRUN_NNODES", "3"}};
  EXPECT_EQ(accepted({"--nnodes=4", "p"}, both).options.text("nnodes"), "4");
  EXPECT_EQ(accepted({"p"}, both).options.text("nnodes"), "3");
  EXPECT_EQ(accepted({"p"}, {{"PET_NNODES", "2"}}).options.text("nnodes"), "2");
  EXPECT_EQ(accepted({"p"}, both).options.at("nnodes").place, "LRUN_NNODES");
  EXPECT_EQ(accepted({"p"}, {{"PET_LEASE", "9"}}).options.text("lease"), "5") << "only lrun has it";
  EXPECT_FALSE(accepted({"p"}).options.is_given("nnodes"));
}

TEST(OptionParser, SwitchesTakeTheUsualWords) {
  for (const char* on : {"1", "2", "true", "YES"}) {
    EXPECT_TRUE(accepted({"p"}, {{"PET_STANDALONE", on}}).options.is_on("standalone")) << on;
  }
  EXPECT_FALSE(accepted({"p"}, {{"PET_STANDALONE", "0"}}).options.is_on("standalone"));
  EXPECT_TRUE(
      accepted({"--standalone", "p"}, {{"PET_STANDALONE", "0"}}).options.is_on("standalone"));
  EXPECT_THAT(refused({"p"}, {{"PET_STANDALONE", "maybe"}}), HasSubstr("PET_STANDALONE='maybe'"));
  EXPECT_FALSE(accepted({"--standalone=no", "p"}).options.is_on("standalone"));
}

TEST(OptionParser, HelpFitsTheTerminal) {
  const std::string help = help_for(kTable, 60);
  EXPECT_THAT(help, HasSubstr("--nproc-per-node=N, --nproc  (1)"));
  for (std::size_t begin = 0; begin < help.size();) {
    const std::size_t end = help.find('\n', begin);
    EXPECT_LE(end - begin, 60U);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace lrun::launcher
