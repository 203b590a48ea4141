// The keeper with real processes: what it starts, what it reports, and that nothing is left.
#include "agent/keeper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/keeper_messages.h"
#include "tests/agent/io_support.h"

namespace lrun::agent {
namespace {

using testing::eventually;
using testing::io_worker;
using testing::kTestLimit;
using testing::ProcessMark;
using testing::TemporaryFolder;

// B047: this program runs as nohup would start it. The first keeper takes note.
[[maybe_unused]] const auto kHangupIgnored = ::signal(SIGHUP, SIG_IGN);

void order_spawn(const Keeper& keeper, WorkerSerial worker, std::vector<std::string> command,
                 const ProcessMark& mark, std::vector<std::string> more = {}) {
  SpawnPayload payload{.command = std::move(command), .environment = {mark.entry()}, .marks = {}};
  payload.environment.push_back("PATH=/usr/bin:/bin");
  payload.environment.push_back("WORKER=" + std::to_string(worker));
  payload.environment.insert(payload.environment.end(), more.begin(), more.end());
  payload.marks = {"WORKER=" + std::to_string(worker), mark.entry()};
  SpawnDescriptors descriptors;
  descriptors.payload = to_memory_file(payload);
  ASSERT_TRUE(
      send_order(keeper.connection(), {.kind = OrderKind::Spawn, .worker = worker}, &descriptors));
}

void order_signal(const Keeper& keeper, WorkerSerial worker, int signal_number) {
  const Order order{.kind = OrderKind::Signal, .worker = worker, .signal_number = signal_number};
  ASSERT_TRUE(send_order(keeper.connection(), order, nullptr));
}

std::optional<Report> next_report(const Keeper& keeper) {
  pollfd watched{keeper.connection().get(), POLLIN, 0};
  const int limit_ms = static_cast<int>(std::chrono::milliseconds(kTestLimit).count());
  Report report;
  if (::poll(&watched, 1, limit_ms) != 1) return std::nullopt;
  if (receive_report(keeper.connection(), &report) != Received::Message) return std::nullopt;
  return report;
}

std::optional<Report> next_report(const Keeper& keeper, ReportKind expected) {
  const std::optional<Report> report = next_report(keeper);
  if (report && report->kind == expected) return report;
  ADD_FAILURE() << "no such report: " << static_cast<int>(expected);
  return std::nullopt;
}

TEST(KeeperIoTest, ReportsCodesAndSignals) {
  const ProcessMark mark;
  Keeper keeper = Keeper::start();
  for (const int code : {0, 1, 7, 126, 255}) {
    order_spawn(keeper, 1, {"sh", "-c", "exit " + std::to_string(code)}, mark);
    const auto spawned = next_report(keeper, ReportKind::Spawned);
    const auto exited = next_report(keeper, ReportKind::Exited);
    ASSERT_TRUE(spawned && exited);
    EXPECT_EQ(exited->pid, spawned->pid);
    EXPECT_EQ(exited->by_signal, 0u);
    EXPECT_EQ(exited->code, code);
  }
  order_spawn(keeper, 2, {"sh", "-c", "kill -INT $$"}, mark);  // B051
  next_report(keeper, ReportKind::Spawned);
  const auto exited = next_report(keeper, ReportKind::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->by_signal, 1u);
  EXPECT_EQ(exited->code, SIGINT);
  EXPECT_TRUE(keeper.end_tree());
}

TEST(KeeperIoTest, APogramThatCannotRunIsReportedWithItsReason) {
  const ProcessMark mark;
  Keeper keeper = Keeper::start();
  order_spawn(keeper, 1, {"/nonexistent/program"}, mark);
  auto report = next_report(keeper, ReportKind::SpawnFailed);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->error, ENOENT);
  order_spawn(keeper, 2, {"/etc/passwd"}, mark);
  report = next_report(keeper, ReportKind::SpawnFailed);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->error, EACCES);
  order_spawn(keeper, 3, {"true"}, mark);
  ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
  ASSERT_TRUE(next_report(keeper, ReportKind::Exited));
}

TEST(KeeperIoTest, AWorkerLeadsItsOwnSessionWithCleanSignals) {
  const ProcessMark mark;
  const TemporaryFolder folder;
  const std::string seen = folder.path() / "seen";
  Keeper keeper = Keeper::start();
  order_spawn(keeper, 1, {io_worker(), "describe-process", seen}, mark);
  const auto spawned = next_report(keeper, ReportKind::Spawned);
  ASSERT_TRUE(spawned && next_report(keeper, ReportKind::Exited));
  const std::string pid = std::to_string(spawned->pid);
  EXPECT_EQ(testing::read_file(seen), pid + " " + pid + " " + pid +
                                          "\nSigBlk:\t0000000000000000\n"
                                          "SigIgn:\t0000000000000001\n"
                                          "descriptors 0 1 2\n");
}

TEST(KeeperIoTest, SignalsReachTheWholeGroup) {
  const ProcessMark mark;
  const TemporaryFolder folder;
  const std::string ready = folder.path() / "ready";
  Keeper keeper = Keeper::start();
  order_spawn(keeper, 1,
              {"sh", "-c",
               "sh -c 'trap \"echo > " + ready + ".child; exit\" TERM; echo > " + ready +
                   "; while :; do sleep 0.01; done' & trap 'wait; exit 5' TERM; wait"},
              mark);
  ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ready); }));
  order_signal(keeper, 1, SIGTERM);
  const auto exited = next_report(keeper, ReportKind::Exited);
  ASSERT_TRUE(exited);
  EXPECT_TRUE(std::filesystem::exists(ready + ".child"));
}

// B057, B059: the next attempt never meets the old one.
TEST(KeeperIoTest, WhatAWorkerLeavesBehindIsGoneBeforeItsExitIsReported) {
  const ProcessMark left;
  const ProcessMark other;
  const TemporaryFolder folder;
  const std::string ready = folder.path() / "ready";
  Keeper keeper = Keeper::start();
  order_spawn(keeper, 1, {io_worker(), "tree", ready}, other);
  ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ready); }));
  ASSERT_TRUE(eventually([&] { return other.carriers().size() == 4u; }));
  for (WorkerSerial worker = 2; worker < 12; ++worker) {
    order_spawn(keeper, worker, {io_worker(), "leave-daemon"}, left);
    ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
    const auto exited = next_report(keeper, ReportKind::Exited);
    ASSERT_TRUE(exited);
    EXPECT_EQ(exited->code, 0);
    EXPECT_EQ(exited->left_behind, 0u);
    EXPECT_EQ(left.carriers().size(), 0u);
  }
  // A living worker's own daemon is spared.
  EXPECT_EQ(other.carriers().size(), 4u);
  EXPECT_TRUE(keeper.end_tree());
  EXPECT_EQ(other.carriers().size(), 0u);
}

TEST(KeeperIoTest, ALargeEnvironmentArrives) {
  const ProcessMark mark;
  Keeper keeper = Keeper::start();
  std::vector<std::string> more;
  for (int at = 0; at < 12; ++at) {
    more.push_back("BIG" + std::to_string(at) + "=" + std::string(100'000, 'x'));
  }
  order_spawn(keeper, 1, {"sh", "-c", "test ${#BIG11} = 100000 && exit 9"}, mark, more);
  ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
  const auto exited = next_report(keeper, ReportKind::Exited);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->code, 9);
}

// A script may start something and then become lrun.
TEST(KeeperIoTest, EarlierChildrenAreSpared) {
  const ProcessMark mark;
  const pid_t earlier = ::fork();
  if (earlier == 0) {
    ::alarm(120);
    while (true) ::pause();
  }
  Keeper keeper = Keeper::start();
  order_spawn(keeper, 1, {"sleep", "60"}, mark);
  ASSERT_TRUE(next_report(keeper, ReportKind::Spawned));
  ::kill(keeper.keeper_pid(), SIGKILL);
  ::kill(keeper.guard_pid(), SIGKILL);
  EXPECT_TRUE(keeper.end_tree());
  EXPECT_TRUE(mark.carriers().empty());
  EXPECT_TRUE(testing::is_alive(earlier));
  ::kill(earlier, SIGKILL);
  ::waitpid(earlier, nullptr, 0);
}

// --- kill -9 in every room
// -------------------------------------------------------------------------

struct AgentProcess {
  pid_t agent = -1;
  pid_t guard = -1;
  pid_t keeper = -1;
};

// A process that does what an agent does with its keeper: starts a worker with descendants of all
// kinds, and ends the tree when the keeper is gone.
AgentProcess start_agent(const ProcessMark& mark, const std::string& ready) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  AgentProcess started;
  started.agent = ::fork();
  if (started.agent == 0) {
    ::alarm(120);
    Keeper keeper = Keeper::start();
    order_spawn(keeper, 1, {io_worker(), "tree", ready}, mark);
    const AgentProcess told{::getpid(), keeper.guard_pid(), keeper.keeper_pid()};
    if (::write(ends[1], &told, sizeof(told)) != sizeof(told)) ::_exit(1);
    Report report;
    pollfd watched{keeper.connection().get(), POLLIN, 0};
    while (::poll(&watched, 1, -1) >= 0) {
      if (receive_report(keeper.connection(), &report) == Received::PeerGone) break;
    }
    ::_exit(keeper.end_tree() ? 0 : 1);
  }
  ::close(ends[1]);
  EXPECT_EQ(::read(ends[0], &started, sizeof(started)), static_cast<ssize_t>(sizeof(started)));
  ::close(ends[0]);
  return started;
}

struct Victims {
  const char* name;
  bool agent;
  bool guard;
  bool keeper;
};

class KillIoTest : public ::testing::TestWithParam<Victims> {};

// B057: 20 of 20 tries, with grandchildren in sessions of their own and a double fork.
TEST_P(KillIoTest, NothingIsLeft) {
  for (int round = 0; round < 20; ++round) {
    const ProcessMark mark;
    const TemporaryFolder folder;
    const std::string ready = folder.path() / "ready";
    const AgentProcess started = start_agent(mark, ready);
    ASSERT_GT(started.keeper, 0);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ready); }));
    ASSERT_TRUE(eventually([&] { return mark.carriers().size() == 4u; })) << mark.carriers().size();

    if (GetParam().agent) ::kill(started.agent, SIGKILL);
    if (GetParam().keeper) ::kill(started.keeper, SIGKILL);
    if (GetParam().guard) ::kill(started.guard, SIGKILL);

    EXPECT_TRUE(eventually([&] { return mark.carriers().empty(); })) << "round " << round;
    if (GetParam().agent || GetParam().keeper) {
      EXPECT_TRUE(eventually([&] {
        return !testing::is_alive(started.agent) && !testing::is_alive(started.guard) &&
               !testing::is_alive(started.keeper);
      })) << "round "
          << round;
    }
    ::kill(started.agent, SIGKILL);
    ::waitpid(started.agent, nullptr, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, KillIoTest,
                         ::testing::Values(Victims{"Agent", true, false, false},
                                           Victims{"Keeper", false, false, true},
                                           Victims{"AgentAndKeeper", true, false, true},
                                           Victims{"AgentAndGuard", true, true, false},
                                           Victims{"KeeperAndGuard", false, true, true}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace lrun::agent
