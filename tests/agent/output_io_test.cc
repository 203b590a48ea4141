// What workers print, end to end: files, console, prefixes; and the console alone.
#include "agent/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <variant>

#include "agent/console.h"
#include "agent/run_folder.h"
#include "tests/agent/agent_fixture.h"

namespace lrun::agent {
namespace {

using testing::AgentRun;
using testing::io_worker;
using testing::TemporaryFolder;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string numbered(int count, const std::string& prefix) {
  std::string text;
  for (int line = 0; line < count; ++line) text += prefix + "line " + std::to_string(line) + "\n";
  return text;
}

// B072: all of them, in order, though the worker aborts right after.
TEST(OutputIoTest, HundredThousandLinesBeforeAnAbortAllArrive) {
  AgentRun run({io_worker(), "numbered-lines", "100000"});
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish && finish->cause);
  EXPECT_EQ(finish->cause->kind, FailureKind::Signal);
  EXPECT_EQ(finish->cause->code, SIGABRT);
  EXPECT_TRUE(run.log("attempt_0/0/stdout.log") == numbered(100'000, ""));
  EXPECT_TRUE(run.console_stdout() == numbered(100'000, "[default0]:"));
}

// The rows H13 and H14: one prefix for a line whose parts arrive apart; no byte is altered.
TEST(OutputIoTest, LinesAreNeitherTornNorAltered) {
  AgentRun run({io_worker(), "torn-line"});
  run.start();
  ASSERT_TRUE(run.run());
  const std::string odd("\xff\0\n", 3);
  EXPECT_EQ(run.log("attempt_0/0/stdout.log"), "half a line\n" + odd + "a\rb\nno newline");
  EXPECT_EQ(run.console_stdout(), "[default0]:half a line\n[default0]:" + odd +
                                      "[default0]:a\rb\n[default0]:no newline\n");
}

// B070: eight workers at once, long lines included.
TEST(OutputIoTest, LinesOfManyWorkersAreWhole) {
  AgentRun run({"sh", "-c",
                "long=$(head -c 70000 /dev/zero | tr '\\0' $local_rank);"
                "for i in 1 2 3 4 5 6 7 8 9 10; do echo $long; done"});
  run.options.config.facts.slots = 8;
  run.start();
  ASSERT_TRUE(run.run());
  const std::string console = run.console_stdout();
  int lines = 0;
  for (std::size_t at = 0; at < console.size(); ++lines) {
    const std::size_t end = console.find('\n', at);
    const char rank = console[at + 8];
    ASSERT_EQ(console.substr(at, end - at),
              std::string("[default") + rank + "]:" + std::string(70'000, rank));
    at = end + 1;
  }
  EXPECT_EQ(lines, 80);
}

// The rows H1, H2, H4: redirected is not on the console, the rest is the launcher's own stream.
TEST(OutputIoTest, RedirectedStreamsGoToFilesOnly) {
  AgentRun run({"sh", "-c", "echo out; echo err >&2; echo last >&2; exit 4"});
  run.options.output.tee = {};
  run.options.output.redirects = {.others = 0, .of_rank = {{LocalRank{0}, 3}, {LocalRank{1}, 2}}};
  run.options.config.facts.slots = 2;
  run.options.command = {"sh", "-c",
                         "test $local_rank = 1 || { echo out; echo err >&2; exit 4; }; sleep 60"};
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish && finish->cause);
  EXPECT_EQ(run.log("attempt_0/0/stdout.log"), "out\n");
  EXPECT_EQ(run.log("attempt_0/0/stderr.log"), "err\n");
  EXPECT_FALSE(run.has_log("attempt_0/1/stdout.log"));
  EXPECT_TRUE(run.has_log("attempt_0/1/stderr.log"));
  EXPECT_EQ(run.console_stdout() + run.console_stderr(), "");
  // The file's end is still told.
  EXPECT_TRUE(has(finish->cause->sentence, "err")) << finish->cause->sentence;
}

TEST(OutputIoTest, WithoutFilesNothingIsWritten) {
  AgentRun run({"true"});
  run.options.output.run_folder = "";
  run.options.config.log_folder = "";
  run.start();
  const auto finish = run.run();
  ASSERT_TRUE(finish);
  EXPECT_EQ(finish->outcome, Outcome::Succeeded);
}

TEST(OutputIoTest, EarlierFoldersOfAnAttemptAreKept) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  Output output(loop, {.run_folder = folder.path(), .redirects = {.others = 3}},
                [](Stream, std::size_t) {});
  WorkerEnv worker;
  for (const char* text : {"one", "two", "three"}) {
    output.begin_group(0);
    const WorkerStreams streams = output.open(worker);
    ASSERT_EQ(::write(streams.stdout_end.get(), text, 3), 3);
  }
  EXPECT_EQ(testing::read_file(folder.path() / "attempt_0.1/0/stdout.log"), "one");
  EXPECT_EQ(testing::read_file(folder.path() / "attempt_0.2/0/stdout.log"), "two");
  EXPECT_EQ(testing::read_file(folder.path() / "attempt_0/0/stdout.log"), "thr");
}

TEST(OutputIoTest, AStrangerWhoHoldsThePipeDelaysTheEndOnlySoLong) {
  const TemporaryFolder folder;
  boost::asio::io_context loop;
  Output output(loop, {.run_folder = folder.path(), .tee = {.others = 3}},
                [](Stream, std::size_t) {});
  WorkerEnv worker;
  WorkerStreams held = output.open(worker);
  ASSERT_EQ(::write(held.stderr_end.get(), "held\n", 5), 5);
  std::string last_lines;
  output.drain({0}, [&](const std::string& lines) { last_lines = lines; });
  loop.run_for(testing::kTestLimit);  // until nothing is left to wait for
  EXPECT_EQ(last_lines, "held");
}

// A console that nobody reads: never waits, loses whole lines, says how many bytes.
TEST(ConsoleIoTest, AStoppedReaderCostsLinesNotTime) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  boost::asio::io_context loop;
  std::size_t dropped = 0;
  Console console(loop, write_end.get(), [&](std::size_t bytes) { dropped += bytes; });
  const std::string line = std::string(999, 'x') + "\n";
  std::size_t written = 0;
  for (; written < 2 * kConsoleBytesMax; written += line.size()) console.write(line);
  EXPECT_GT(dropped, 0u);
  EXPECT_LE(console.pending(), kConsoleBytesMax);
  // The description that others share is still a blocking one.
  EXPECT_EQ(::fcntl(write_end.get(), F_GETFL) & O_NONBLOCK, 0);

  std::string shown;
  std::string piece(64 * 1024, '\0');
  ASSERT_EQ(::fcntl(read_end.get(), F_SETFL, O_NONBLOCK), 0);
  bool is_told = false;
  const auto deadline = std::chrono::steady_clock::now() + testing::kTestLimit;
  while (std::chrono::steady_clock::now() < deadline) {
    const ssize_t got = ::read(read_end.get(), piece.data(), piece.size());
    if (got > 0) shown.append(piece, 0, static_cast<std::size_t>(got));
    loop.run_for(std::chrono::milliseconds(1));
    if (console.pending() > 0 || got > 0) continue;
    if (is_told) break;
    console.write("now\n");
    is_told = true;
  }
  EXPECT_TRUE(has(shown, "[lrun: " + std::to_string(dropped) + " bytes"));
  EXPECT_EQ(shown.substr(shown.size() - 4), "now\n");
  const std::size_t note = shown.find("[lrun");
  EXPECT_EQ(note, written - dropped);
  EXPECT_EQ(note % line.size(), 0u);
}

TEST(ConsoleIoTest, AReaderThatHasGoneEndsNothing) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const Fd write_end(ends[1]);
  boost::asio::io_context loop;
  std::size_t dropped = 0;
  Console console(loop, write_end.get(), [&](std::size_t bytes) { dropped += bytes; });
  console.write("gone\n");
  console.write("gone\n");
  EXPECT_EQ(dropped, 10u);
  EXPECT_EQ(console.pending(), 0u);
}

// B073: a folder that cannot be used is one line before anything starts.
TEST(RunFolderIoTest, FoldersAreNewSafeAndAbsolute) {
  const TemporaryFolder folder;
  const std::string base = folder.path() / "lg";
  const auto first = make_run_folder(base, "a/b");
  const auto second = make_run_folder(base, "a/b");
  ASSERT_TRUE(std::holds_alternative<std::string>(first));
  ASSERT_TRUE(std::holds_alternative<std::string>(second));
  EXPECT_NE(std::get<std::string>(first), std::get<std::string>(second));
  EXPECT_EQ(std::get<std::string>(first).rfind(base + "/a_b_", 0), 0u);
  EXPECT_TRUE(std::filesystem::is_directory(std::get<std::string>(first)));
  EXPECT_EQ(std::get<std::string>(make_run_folder("/dev/null", "x")), "");
  EXPECT_EQ(folder_name(".."), "_.");
  EXPECT_EQ(folder_name(""), "none");
  EXPECT_EQ(folder_name(std::string(5000, 'x')).size(), 200u);
}

TEST(RunFolderIoTest, AFileIsRefusedByName) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "file";
  Fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const auto made = make_run_folder(file, "x");
  ASSERT_TRUE(std::holds_alternative<UsageError>(made));
  EXPECT_TRUE(has(std::get<UsageError>(made).sentence, file));
}

}  // namespace
}  // namespace lrun::agent
