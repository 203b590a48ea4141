#include "proto/channel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace lrun::channel {
namespace {

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

std::string_view without_newline(const std::string& line) {
  return std::string_view(line).substr(0, line.size() - 1);
}

std::string mistake_in(std::string_view line) {
  const auto read = parse_from_worker(line);
  const auto* error = std::get_if<GrammarError>(&read);
  return error ? error->sentence : "";
}

std::vector<FromWorker> messages_from_worker() {
  return {Hello{.version = 1, .live = true},
          Progress{.step = kInt64Max,
                   .samples = 12,
                   .activity = Activity::Waiting,
                   .peer = GlobalRank{3},
                   .samples_per_second = 1234.5678901234567},
          Progress{},
          Progress{.activity = Activity::Saving},
          SnapshotTaken{.step = 7},
          PublishValue{.key = "comm/0", .value = "line\nbreak \"quoted\" \\ \x01 Grüße"},
          PublishValue{.key = "empty", .value = ""},
          LookupValue{.key = "comm/1"},
          Failed{.reason = "peer closed", .peer = GlobalRank{2}},
          Failed{.reason = "out of memory"},
          CheckpointSaved{.step = 100, .path = "/ckpt/step_100"},
          Aborted{.generation = {.term = 3, .number = 4}},
          Ready{.generation = {.term = std::numeric_limits<std::uint64_t>::max(), .number = 5}}};
}

std::vector<ToWorker> messages_to_worker() {
  return {NewAssignment{.generation = {.term = 1, .number = 2},
                        .global_rank = {5},
                        .world_size = 8,
                        .group_rank = {1},
                        .group_world_size = 2,
                        .master_addr = "10.0.0.1",
                        .master_port = 29500,
                        .restart_count = 3},
          Abort{.generation = {.term = 1, .number = 2}, .reason = "node n2 was lost"},
          Value{.key = "k", .value = "v"}, Drain{}, Stop{}};
}

TEST(ChannelTest, EveryMessageSurvivesTheRoundTrip) {
  for (const FromWorker& message : messages_from_worker()) {
    const std::string line = to_line(message);
    ASSERT_EQ(line.find('\n'), line.size() - 1) << line;
    const auto read = parse_from_worker(without_newline(line));
    ASSERT_TRUE(std::holds_alternative<FromWorker>(read)) << line;
    EXPECT_EQ(std::get<FromWorker>(read), message) << line;
  }
  for (const ToWorker& message : messages_to_worker()) {
    const std::string line = to_line(message);
    ASSERT_EQ(line.find('\n'), line.size() - 1) << line;
    const auto read = parse_to_worker(without_newline(line));
    ASSERT_TRUE(std::holds_alternative<ToWorker>(read)) << line;
    EXPECT_EQ(std::get<ToWorker>(read), message) << line;
  }
}

// The lines are a contract with programs in any language: they change only with kVersion.
TEST(ChannelTest, TheLinesAreAsDocumented) {
  EXPECT_EQ(to_line(FromWorker{Hello{.version = 1, .live = true}}),
            "{\"type\":\"hello\",\"version\":1,\"live\":true}\n");
  EXPECT_EQ(to_line(FromWorker{Progress{.step = 7, .samples = 70, .samples_per_second = 2.5}}),
            "{\"type\":\"progress\",\"step\":7,\"samples\":70,\"activity\":\"computing\","
            "\"samples_per_second\":2.5}\n");
  EXPECT_EQ(to_line(ToWorker{Abort{.generation = {.term = 17, .number = 3}, .reason = "r"}}),
            "{\"type\":\"abort\",\"generation\":\"17.3\",\"reason\":\"r\"}\n");
}

TEST(ChannelTest, WhatOtherLanguagesWriteIsUnderstood) {
  const auto read = parse_from_worker(
      " { \"step\" : 3 , \"type\" : \"progress\", \"peer\" : null, \"extra\":[{\"a\":[1]}] } ");
  ASSERT_TRUE(std::holds_alternative<FromWorker>(read)) << mistake_in("{}");
  EXPECT_EQ(std::get<FromWorker>(read), FromWorker{Progress{.step = 3}});
}

TEST(ChannelTest, WhatBreaksTheGrammarIsRefusedWithASentence) {
  for (const std::string_view line : {
           R"()",
           R"([])",
           R"(3)",
           R"("hello")",
           R"(null)",
           R"({})",
           R"({"type":3})",
           R"({"type":"nonsense"})",
           R"({"type":"stop"})",
           R"({"type":"hello")",
           R"({"type":"hello","version":1} x)",
           R"({"type":"hello"})",
           R"({"type":"hello","version":"1"})",
           R"({"type":"hello","version":0})",
           R"({"type":"hello","version":1,"live":1})",
           R"({"type":"hello","type":"hello","version":1})",
           R"({"type":"hello","version":1,"x":null,"x":null})",
           R"({"type":"progress"})",
           R"({"type":"progress","step":-1})",
           R"({"type":"progress","step":1.5})",
           R"({"type":"progress","step":true})",
           R"({"type":"progress","step":[1]})",
           R"({"type":"progress","step":1e999})",
           R"({"type":"progress","step":9223372036854775808})",
           R"({"type":"progress","step":99999999999999999999999})",
           R"({"type":"progress","step":1,"samples":-1})",
           R"({"type":"progress","step":1,"peer":2147483648})",
           R"({"type":"progress","step":1,"peer":-1})",
           R"({"type":"progress","step":1,"activity":"sleeping"})",
           R"({"type":"progress","step":1,"samples_per_second":-0.5})",
           R"({"type":"progress","step":1,"samples_per_second":NaN})",
           R"({"type":"publish","key":"","value":"v"})",
           R"({"type":"publish","key":"k"})",
           R"({"type":"publish","key":"k","value":5})",
           R"({"type":"lookup"})",
           R"({"type":"failed"})",
           R"({"type":"checkpoint","step":1})",
           R"({"type":"aborted","generation":3})",
           R"({"type":"ready","generation":"3"})",
           R"({"type":"ready","generation":"3.x"})",
           R"({"type":"ready","generation":"-3.1"})",
           "{\"type\":\"failed\",\"reason\":\"\xff\"}",
           "{\"type\":\"failed\",\"reason\":\"a\tb\"}",
       }) {
    const std::string sentence = mistake_in(line);
    EXPECT_FALSE(sentence.empty()) << line;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << line;
  }
  EXPECT_FALSE(
      mistake_in(std::string_view("{\"type\":\"failed\",\"reason\":\"x\"}\0{}", 32)).empty());
}

TEST(ChannelTest, RanksOfAnAssignmentLieWithinTheirSizes) {
  std::string line = to_line(messages_to_worker().front());
  const std::size_t at = line.find("\"global_rank\":5");
  ASSERT_NE(at, std::string::npos);
  line.replace(at, 15, "\"global_rank\":8");
  EXPECT_TRUE(std::holds_alternative<GrammarError>(parse_to_worker(without_newline(line))));
}

TEST(ChannelTest, LimitsOfTheBlackboardHold) {
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, '\x01');
  const std::string line = to_line(FromWorker{PublishValue{.key = key, .value = value}});
  EXPECT_LE(line.size(), kMessageBytesMax);
  const auto read = parse_from_worker(without_newline(line));
  ASSERT_TRUE(std::holds_alternative<FromWorker>(read));
  EXPECT_EQ(std::get<PublishValue>(std::get<FromWorker>(read)).value, value);
  EXPECT_FALSE(mistake_in("{\"type\":\"lookup\",\"key\":\"" + key + "k\"}").empty());
  EXPECT_FALSE(mistake_in("{\"type\":\"publish\",\"key\":\"k\",\"value\":\"" +
                          std::string(4097, 'v') + "\"}")
                   .empty());
}

TEST(ChannelTest, TextsAreCutBetweenCharactersAndMadeValid) {
  const std::string line = to_line(FromWorker{Failed{.reason = std::string(4095, 'a') + "ü"}});
  const auto read = parse_from_worker(without_newline(line));
  ASSERT_TRUE(std::holds_alternative<FromWorker>(read));
  EXPECT_EQ(std::get<Failed>(std::get<FromWorker>(read)).reason, std::string(4095, 'a'));

  const std::string worst = to_line(FromWorker{Failed{.reason = std::string(100'000, '\x01')}});
  EXPECT_LE(worst.size(), kMessageBytesMax);
  const std::string broken = to_line(FromWorker{Failed{.reason = "\xff\xfe bytes"}});
  EXPECT_TRUE(std::holds_alternative<FromWorker>(parse_from_worker(without_newline(broken))));
}

TEST(ChannelTest, NumbersThatJsonCannotSayBecomeZero) {
  for (const double rate : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::string line = to_line(FromWorker{Progress{.samples_per_second = rate}});
    const auto read = parse_from_worker(without_newline(line));
    ASSERT_TRUE(std::holds_alternative<FromWorker>(read)) << line;
    EXPECT_EQ(std::get<Progress>(std::get<FromWorker>(read)).samples_per_second, 0);
  }
}

TEST(ChannelTest, DeepNestingIsRefusedWithoutRecursion) {
  const std::string open(30'000, '[');
  EXPECT_FALSE(mistake_in("{\"type\":\"hello\",\"version\":1,\"x\":" + open + "}").empty());
  const std::string closed = open + std::string(30'000, ']');
  EXPECT_FALSE(mistake_in("{\"type\":\"hello\",\"version\":1,\"x\":" + closed + "}").empty());
}

// Any bytes: never an exception, and what is accepted can be written and read again.
TEST(ChannelTest, DamagedLinesNeverThrow) {
  std::mt19937_64 random(20260131);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto messages = messages_from_worker();
    std::string line = to_line(messages[random() % messages.size()]);
    line.pop_back();
    for (auto edits = random() % 4; edits > 0 && !line.empty(); --edits) {
      const std::size_t at = random() % line.size();
      if (random() % 2 == 0) {
        line[at] = static_cast<char>(random());
      } else {
        line.erase(at, random() % 8);
      }
    }
    const auto read = parse_from_worker(line);
    if (const auto* message = std::get_if<FromWorker>(&read)) {
      ++accepted;
      const std::string again = to_line(*message);
      const auto second = parse_from_worker(without_newline(again));
      ASSERT_TRUE(std::holds_alternative<FromWorker>(second)) << again;
      EXPECT_EQ(std::get<FromWorker>(second), *message);
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(LineReaderTest, LinesComeOutWholeHoweverTheyArrive) {
  const std::string bytes = "one\n\ntwo\nthree";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    LineReader reader;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      for (std::string& line : reader.feed(std::string_view(bytes).substr(at, piece))) {
        lines.push_back(std::move(line));
      }
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two"})) << piece;
    EXPECT_EQ(reader.feed("\n"), std::vector<std::string>{"three"});
  }
}

TEST(LineReaderTest, ALineBeyondTheLimitBreaksItForEver) {
  LineReader reader;
  const std::string longest(kMessageBytesMax - 1, 'x');
  EXPECT_EQ(reader.feed(longest + "\n").size(), 1u);
  EXPECT_EQ(reader.feed("first\n" + longest + "x\n"), std::vector<std::string>{"first"});
  EXPECT_TRUE(reader.is_broken());
  EXPECT_TRUE(reader.feed("later\n").empty());
}

TEST(LineReaderTest, BytesWithoutNewlineAreBounded) {
  LineReader reader;
  for (int piece = 0; piece < 1000; ++piece) reader.feed(std::string(1000, 'x'));
  EXPECT_TRUE(reader.is_broken());
}

}  // namespace
}  // namespace lrun::channel
