#include "launcher/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

RunOptions accepted(std::vector<std::string> words, const Environment& environment = {}) {
  words.emplace_back("p");
  const auto parsed = parse_run(words, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    ADD_FAILURE() << error->sentence;
    return {};
  }
  return std::get<RunCommand>(parsed).options;
}

std::string refused(std::vector<std::string> words, const Environment& environment = {}) {
  words.emplace_back("p");
  const auto parsed = parse_run(words, environment);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error == nullptr ? "accepted" : error->sentence;
}

TEST(RunOptions, HasTorchrunsDefaults) {
  const RunOptions options = accepted({});
  EXPECT_FALSE(options.nodes.has_value());
  EXPECT_FALSE(options.slots.has_value());
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.role, "default");
  EXPECT_EQ(options.lease, std::chrono::seconds(5));
  EXPECT_EQ(options.join_timeout, std::chrono::seconds(600));
}

TEST(RunOptions, ReadsNodesAndRanges) {
  EXPECT_EQ(accepted({"--nnodes=3"}).nodes->max, 3);
  EXPECT_EQ(accepted({"--nnodes=1:4"}).nodes->min, 1);
  EXPECT_EQ(accepted({"--nnodes=1:4"}).nodes->max, 4);
}

TEST(RunOptions, RefusesImpossibleNodes) {
  for (const char* text : {"0", "2:1", "abc", "1:", ":2", "2:20:30", "-1", "1.5", "99999999999"}) {
    EXPECT_THAT(refused({std::string("--nnodes=") + text}),
                AllOf(HasSubstr(std::string("--nnodes='") + text + "'"), HasSubstr("MIN:MAX")));
  }
  EXPECT_THAT(refused({}, {{"PET_NNODES", "2:1"}}), HasSubstr("PET_NNODES='2:1'"));
}

TEST(RunOptions, RefusesImpossibleSlots) {
  for (const char* text : {"-1", "0", "foo", "1x", "5000"}) {
    EXPECT_THAT(refused({std::string("--nproc=") + text}), HasSubstr("cpu"));
  }
  EXPECT_GE(*accepted({"--nproc=cpu"}).slots, 1);
}

// B001, A26: what can never be dialled is refused before anything starts.
TEST(RunOptions, RefusesImpossiblePorts) {
  for (const char* text : {"h:70000", "h:x", "h:-1", "[::1]:70000"}) {
    EXPECT_THAT(refused({std::string("--rdzv-endpoint=") + text}), HasSubstr("--rdzv-endpoint"))
        << text;
  }
  EXPECT_EQ(accepted({"--rdzv-endpoint=h:29400"}).endpoint, "h:29400");
  EXPECT_EQ(accepted({"--rdzv-endpoint=h"}).endpoint, "h");
}

TEST(RunOptions, RefusesImpossibleTimes) {
  EXPECT_THAT(refused({"--lease=0"}), HasSubstr("--lease='0'"));
  EXPECT_THAT(refused({"--lease=nan"}), HasSubstr("number of seconds"));
  EXPECT_THAT(refused({"--lease=1", "--heartbeat=1"}), HasSubstr("two heartbeats"));
  EXPECT_THAT(refused({"--shutdown-timeout=-1"}), HasSubstr("--shutdown-timeout='-1'"));
  EXPECT_EQ(*accepted({"--shutdown-timeout=0"}).shutdown_timeout, Duration{});
}

TEST(RunOptions, RefusesTextThatCouldHurt) {
  EXPECT_THAT(refused({"--rdzv-id=a\nb"}), HasSubstr("control characters"));
  EXPECT_THAT(refused({"--role=" + std::string(1000, 'x')}), HasSubstr("too long"));
  EXPECT_THAT(refused({"--node-label=x"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refused({"--module", "--no-python"}), HasSubstr("exclude"));
  EXPECT_THAT(refused({"--log-level=loud"}), HasSubstr("error, warn, info, debug"));
}

TEST(RunOptions, RepeatsWhatWasGiven) {
  const RunOptions options = accepted({"--nproc", "4", "--standalone"}, {{"LRUN_LEASE", "7"}});
  EXPECT_THAT(options.repeated, Contains("--nproc-per-node=4"));
  EXPECT_THAT(options.repeated, Contains("--standalone"));
  EXPECT_THAT(options.repeated, Contains("--lease=7"));
}

}  // namespace
}  // namespace lrun::launcher
