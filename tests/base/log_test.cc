#include "base/log.h"

#include <gtest/gtest.h>

namespace lrun::log {
namespace {

std::string line(Format format, std::initializer_list<Field> fields) {
  return format_line(Level::Info, format, "T", "agent", "n2", "worker_exited", fields);
}

TEST(Log, WritesKeysInOrderAsLogfmt) {
  EXPECT_EQ(line(Format::Logfmt, {{"local_rank", 1}, {"status", "signal:9"}, {"core", true}}),
            "ts=T level=info component=agent node=n2 event=worker_exited local_rank=1 "
            "status=signal:9 core=true");
}

TEST(Log, WritesNumbersBareAsJson) {
  EXPECT_EQ(line(Format::Json, {{"pid", 4711}, {"text", "a b"}}),
            R"({"ts":"T","level":"info","component":"agent","node":"n2",)"
            R"("event":"worker_exited","pid":4711,"text":"a b"})");
}

// L2: text from outside can neither forge a line nor drive the terminal.
TEST(Log, EscapesWhatCouldForgeALineOrDriveATerminal) {
  const std::string evil =
      "x\nlevel=error \x1b[2J\"\\ \xC2\x9B"
      "1m";
  const std::string logfmt = line(Format::Logfmt, {{"role", evil}});
  EXPECT_EQ(logfmt.find('\n'), std::string::npos);
  EXPECT_EQ(logfmt.find('\x1b'), std::string::npos);
  EXPECT_EQ(logfmt.find("\xC2\x9B"), std::string::npos);
  EXPECT_NE(logfmt.find(R"(role="x\nlevel=error \u001b[2J\"\\ \u009b1m")"), std::string::npos);
}

TEST(Log, QuotesEmptyTextAndCutsLongText) {
  EXPECT_NE(line(Format::Logfmt, {{"a", ""}}).find("a=\"\""), std::string::npos);
  EXPECT_LT(line(Format::Json, {{"a", std::string(1 << 20, 'x')}}).size(), 5000U);
}

TEST(Log, LevelDecidesWhatIsWritten) {
  configure(Level::Warn, Format::Logfmt, "test", "");
  EXPECT_TRUE(is_enabled(Level::Error));
  EXPECT_TRUE(is_enabled(Level::Warn));
  EXPECT_FALSE(is_enabled(Level::Info));
}

}  // namespace
}  // namespace lrun::log
