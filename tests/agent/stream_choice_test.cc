#include "agent/stream_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace lrun::agent {
namespace {

// The rows A15, H4, H5 of torchrun's conformance.
TEST(StreamChoiceTest, OneValueIsForAllAListForThoseItNames) {
  const auto all = std::get<StreamChoice>(parse_stream_choice("-r", "2"));
  EXPECT_FALSE(all.has({7}, Stream::Stdout));
  EXPECT_TRUE(all.has({7}, Stream::Stderr));
  const auto some = std::get<StreamChoice>(parse_stream_choice("-r", "0:1,12:3"));
  EXPECT_TRUE(some.has({0}, Stream::Stdout));
  EXPECT_FALSE(some.has({0}, Stream::Stderr));
  EXPECT_TRUE(some.has({12}, Stream::Stderr));
  EXPECT_FALSE(some.has({1}, Stream::Stdout));
  EXPECT_FALSE(some.is_empty());
  EXPECT_TRUE(std::get<StreamChoice>(parse_stream_choice("-r", "0")).is_empty());
  EXPECT_TRUE(std::get<StreamChoice>(parse_stream_choice("-r", "3:0")).is_empty());
}

TEST(StreamChoiceTest, AnythingElseIsOneLineThatNamesOptionAndValue) {
  for (const std::string text : {"4", "x", "", "-1", "0:4", "0:1,", ",0:1", "0:", ":1", "0:1:2",
                                 "1 ", "0:1;1:1", "99999999999:1", "-1:1", "0:1,2"}) {
    const auto parsed = parse_stream_choice("--tee", text);
    ASSERT_TRUE(std::holds_alternative<UsageError>(parsed)) << text;
    EXPECT_EQ(std::get<UsageError>(parsed).sentence.rfind("--tee: '" + text + "'", 0), 0u);
  }
}

}  // namespace
}  // namespace lrun::agent
