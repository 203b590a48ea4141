#include "agent/output_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::agent {
namespace {

TEST(OutputLinesTest, APrefixStandsBeforeWholeLinesOnly) {
  const std::string bytes("one\n\ntwo\r\nth\0ree\n\xff", 18);
  const std::string expected("p:one\np:\np:two\r\np:th\0ree\np:\xff\n", 29);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    LinePrefixer prefixer("p:");
    std::string shown;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      shown += prefixer.feed(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(shown + prefixer.finish(), expected) << piece;
  }
}

TEST(OutputLinesTest, AnEndlessLineIsShownInPieces) {
  LinePrefixer prefixer("p:");
  const std::string piece = "p:" + std::string(kLineBytesMax, 'x') + "\n";
  EXPECT_EQ(prefixer.feed(std::string(2 * kLineBytesMax + 1, 'x')), piece + piece);
  EXPECT_EQ(prefixer.finish(), "p:x\n");
  EXPECT_EQ(prefixer.finish(), "");
}

// The row H8 of torchrun's conformance.
TEST(OutputLinesTest, PrefixNamesAreReplacedAndUnknownOnesStay) {
  EXPECT_EQ(expand_prefix("<${role_name}/${rank}/${x}${> ", {{"role_name", "tr"}, {"rank", "1"}}),
            "<tr/1/${x}${> ");
  EXPECT_EQ(expand_prefix("", {}), "");
}

TEST(OutputLinesTest, LastLinesAreBoundedByCountAndBytes) {
  EXPECT_EQ(last_lines(""), "");
  EXPECT_EQ(last_lines("one\ntwo\n"), "one\ntwo");
  std::string many;
  for (int line = 1; line <= 50; ++line) many += std::to_string(line) + "\n";
  EXPECT_EQ(last_lines(many).substr(0, 6), "31\n32\n");
  const std::string wide = std::string(3000, 'a') + "\n" + std::string(3000, 'b') + "\n";
  EXPECT_EQ(last_lines(wide), std::string(3000, 'b'));
  EXPECT_LE(last_lines(std::string(100'000, 'c')).size(), kTailBytesMax);
  EXPECT_GE(last_lines(std::string(100'000, 'c')).size(), kTailBytesMax - 1);
}

TEST(OutputLinesTest, ATailOfAStreamIsThatOfItsText) {
  StreamTail tail;
  std::string text;
  for (int line = 0; line < 5000; ++line) {
    const std::string bytes = "line " + std::to_string(line) + "\n";
    text += bytes;
    tail.feed(bytes);
  }
  EXPECT_EQ(tail.last_lines(), last_lines(text));
  tail.feed(std::string(50'000, 'x'));
  EXPECT_EQ(tail.last_lines(), last_lines(text + std::string(50'000, 'x')));
}

}  // namespace
}  // namespace lrun::agent
