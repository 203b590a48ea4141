// The worker's end of the channel against a socket pair whose other end the test plays.
#include "trainer/comm/worker_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>

#include "tests/trainer/comm/process_world.h"
#include "trainer/comm/channel_bootstrap.h"

namespace lrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr auto kPatience = seconds(30);

class WorkerChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    agent_.reset(ends[0]);
    WorkerEnv worker = alone();
    worker.channel_fd = ends[1];
    channel_ = WorkerChannel::open(worker);
  }

  // The next message that the worker sent.
  channel::FromWorker next() {
    while (lines_.empty()) {
      pollfd waiting{agent_.get(), POLLIN, 0};
      char bytes[4096];
      if (::poll(&waiting, 1, 30'000) != 1) throw std::runtime_error("the worker is silent");
      const auto got = ::recv(agent_.get(), bytes, sizeof bytes, 0);
      if (got <= 0) throw std::runtime_error("the worker has closed");
      for (auto& line : reader_.feed({bytes, static_cast<std::size_t>(got)})) {
        lines_.push_back(line);
      }
    }
    const auto parsed = channel::parse_from_worker(lines_.front());
    lines_.erase(lines_.begin());
    return std::get<channel::FromWorker>(parsed);
  }

  void say(const std::string& text) {
    ASSERT_EQ(::send(agent_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  void say(const channel::ToWorker& message) { say(channel::to_line(message)); }

  bool becomes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      ::poll(nullptr, 0, 1);
    }
    return true;
  }

  Fd agent_;
  channel::LineReader reader_;
  std::vector<std::string> lines_;
  std::unique_ptr<WorkerChannel> channel_;
};

TEST_F(WorkerChannelTest, SaysHelloFirst) {
  channel_->send(channel::Progress{.step = 4});
  EXPECT_EQ(next(), channel::FromWorker(channel::Hello{}));
  EXPECT_EQ(next(), channel::FromWorker(channel::Progress{.step = 4}));
}

TEST_F(WorkerChannelTest, LookupWaitsForItsValue) {
  next();
  auto value = std::async(std::launch::async, [this] { return channel_->lookup("a", kPatience); });
  EXPECT_EQ(next(), channel::FromWorker(channel::LookupValue{"a"}));
  say(channel::Value{"b", "not this"});
  say(channel::Value{"a", "this"});
  EXPECT_EQ(value.get(), "this");
  // Known by now: asked once only.
  EXPECT_EQ(channel_->lookup("b", milliseconds(0)), "not this");
}

TEST_F(WorkerChannelTest, LookupHasADeadline) {
  EXPECT_EQ(outcome_of([&] { channel_->lookup("a", milliseconds(20)); }),
            "DeadlineExceeded: nobody has published 'a' within 20 ms");
}

TEST_F(WorkerChannelTest, BootstrapPublishesAndEndsWithTheGeneration) {
  ChannelBootstrap bootstrap(*channel_);
  next();
  bootstrap.publish("k", "v");
  EXPECT_EQ(next(), channel::FromWorker(channel::PublishValue{"k", "v"}));
  auto value = std::async(std::launch::async, [&] {
    return outcome_of([&] { bootstrap.lookup("other", kPatience); });
  });
  next();
  say(channel::Abort{{1, 2}, "node n3 is gone"});
  EXPECT_EQ(value.get(), "other: the generation has ended: node n3 is gone");
  EXPECT_THROW(bootstrap.publish("k", "v"), std::runtime_error);
}

TEST_F(WorkerChannelTest, KeepsWhatTheAgentAsksFor) {
  EXPECT_FALSE(channel_->is_drain_requested());
  EXPECT_FALSE(channel_->is_stop_requested());
  say(channel::Drain{});
  EXPECT_TRUE(becomes([&] { return channel_->is_drain_requested(); }));
  EXPECT_FALSE(channel_->is_stop_requested());
  say(channel::Stop{});
  EXPECT_TRUE(becomes([&] { return channel_->is_stop_requested(); }));
}

TEST_F(WorkerChannelTest, AbortCallsBackAndAnAssignmentClearsIt) {
  std::promise<std::string> reason;
  channel_->on_abort([&](const channel::Abort& abort) { reason.set_value(abort.reason); });
  say(channel::Abort{{1, 2}, "r"});
  EXPECT_EQ(reason.get_future().get(), "r");
  EXPECT_TRUE(channel_->abort_request());
  say(channel::NewAssignment{.generation = {1, 3}, .world_size = 2});
  EXPECT_TRUE(becomes([&] { return channel_->new_assignment().has_value(); }));
  EXPECT_FALSE(channel_->abort_request());
  channel_->on_abort(nullptr);
}

TEST_F(WorkerChannelTest, EndsWhenTheAgentDies) {
  auto value = std::async(std::launch::async,
                          [this] { return outcome_of([&] { channel_->lookup("a", kPatience); }); });
  agent_.reset();
  EXPECT_EQ(value.get(), "other: the channel to the agent has closed");
  EXPECT_FALSE(channel_->is_open());
  channel_->send(channel::Progress{});
}

TEST_F(WorkerChannelTest, EndsAtALineThatIsNoMessage) {
  say("{\"type\":\"nonsense\"}\n");
  EXPECT_TRUE(becomes([&] { return !channel_->is_open(); }));
}

TEST_F(WorkerChannelTest, AnAgentThatDoesNotReadNeverBlocksTheTraining) {
  const std::string reason(2000, 'x');
  for (int i = 0; i < 2000; ++i) channel_->send(channel::Progress{.step = i});
  for (int i = 0; i < 20; ++i) channel_->send(channel::Failed{.reason = reason, .peer = {}});
  EXPECT_TRUE(channel_->is_open());
  // Progress was dropped, but none of the others.
  int failed = 0;
  while (failed < 20) failed += std::holds_alternative<channel::Failed>(next()) ? 1 : 0;
  for (int i = 0; i < 5000; ++i) channel_->send(channel::Failed{.reason = reason, .peer = {}});
  EXPECT_FALSE(channel_->is_open());
}

TEST(WorkerChannelOpen, WithoutChannelThereIsNone) {
  EXPECT_EQ(WorkerChannel::open(alone()), nullptr);
}

TEST(WorkerChannelOpen, RefusesWhatIsNoSocket) {
  WorkerEnv worker = alone();
  worker.channel_fd = 0;
  EXPECT_THAT(outcome_of([&] { WorkerChannel::open(worker); }),
              HasSubstr("LRUN_CHANNEL_FD=0 is no stream socket"));
}

}  // namespace
}  // namespace lrun::comm
