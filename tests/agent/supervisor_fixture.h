// A supervisor with fake time and the words to talk to it; shared by the tests of its table.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/supervisor.h"

namespace lrun::agent {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    config_.run_id = "job";
    config_.facts.node = NodeId{"a"};
    config_.facts.incarnation = Incarnation{7};
    config_.facts.slots = 2;
    config_.facts.role = "trainer";
    config_.max_restarts = 3;
    config_.kill_grace = seconds(10);
    config_.heartbeat = seconds(1);
    config_.lease = seconds(6);
    config_.log_folder = "/logs";
  }

  // The supervisor is made by the first call, so that a test may change `config_` before.
  Supervisor& supervisor() {
    if (!supervisor_) supervisor_.emplace(config_, now_);
    return *supervisor_;
  }

  const std::vector<Action>& step(const Event& event) {
    actions_ = supervisor().step(now_, event);
    const auto deadline = supervisor().next_deadline();
    EXPECT_TRUE(!deadline || *deadline > now_) << "a deadline in the past";
    return actions_;
  }

  // Lets time pass, waking the supervisor at each of its deadlines; keeps all actions. The service
  // answers every heartbeat at once unless `service_is_silent_`.
  const std::vector<Action>& advance(Duration duration) {
    std::vector<Action> all;
    const Instant end = now_ + duration;
    while (supervisor().next_deadline() && *supervisor().next_deadline() <= end) {
      now_ = std::max(now_, *supervisor().next_deadline());
      const auto some = step(TimePassed{});
      all.insert(all.end(), some.begin(), some.end());
      if (!service_is_silent_ && count<SendHeartbeat>() > 0) {
        const auto more = step(HeartbeatAnswered{now_, seconds(0), seconds(0)});
        all.insert(all.end(), more.begin(), more.end());
      }
    }
    now_ = end;
    actions_ = std::move(all);
    return actions_;
  }

  // --- what was ordered by the last step

  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const Action& action : actions_) {
      if (const auto* one = std::get_if<Kind>(&action)) found.push_back(*one);
    }
    return found;
  }
  template <class Kind>
  std::size_t count() const {
    return all<Kind>().size();
  }
  template <class Kind>
  Kind only() const {
    const auto found = all<Kind>();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Kind{} : found.front();
  }
  // Signals of the last step as (local rank, number).
  std::vector<std::pair<int, int>> signals() const {
    std::vector<std::pair<int, int>> sent;
    for (const SignalWorker& order : all<SignalWorker>()) {
      sent.emplace_back(order.local_rank.value, order.signal_number);
    }
    return sent;
  }
  template <class Message>
  std::vector<int> told() const {
    std::vector<int> ranks;
    for (const TellWorker& order : all<TellWorker>()) {
      if (std::holds_alternative<Message>(order.message)) ranks.push_back(order.local_rank.value);
    }
    return ranks;
  }
  AgentState state() { return supervisor().state(); }

  // --- ways into the states

  static Assignment assignment(std::uint64_t number, int nodes = 2, int restarts_spent = 0) {
    Assignment news;
    news.generation = {1, number};
    news.group_rank = GroupRank{nodes - 1};
    news.group_world_size = nodes;
    news.first_global_rank = GlobalRank{2 * (nodes - 1)};
    news.slots = 2;
    news.world_size = 2 * nodes;
    news.first_role_rank = 2 * (nodes - 1);
    news.role_world_size = 2 * nodes;
    news.master_addr = "10.0.0.1";
    news.master_port = 4242;
    news.restarts_spent = restarts_spent;
    return news;
  }
  void start() { step(Started{}); }
  void assign(std::uint64_t number, int nodes = 2, int restarts_spent = 0) {
    step(Assigned{assignment(number, nodes, restarts_spent)});
  }
  void spawned(int slot) { step(WorkerSpawned{LocalRank{slot}, 100 + slot}); }
  void hello(int slot, bool live = true) { say(slot, channel::Hello{.live = live}); }
  const std::vector<Action>& say(int slot, channel::FromWorker message) {
    return step(WorkerSaid{LocalRank{slot}, std::move(message)});
  }
  const std::vector<Action>& exits(int slot, int code) {
    return step(WorkerExited{LocalRank{slot}, ExitStatus{.code = code}, ""});
  }
  const std::vector<Action>& dies(int slot, int signal_number) {
    return step(
        WorkerExited{LocalRank{slot}, ExitStatus{.by_signal = true, .code = signal_number}, ""});
  }
  const std::vector<Action>& rejoin(RejoinReason reason = RejoinReason::NodeLost) {
    return step(DirectiveReceived{Rejoin{reason, {}}, {}});
  }
  const std::vector<Action>& stop_job(Outcome outcome) {
    return step(DirectiveReceived{StopJob{outcome, {}}, {}});
  }
  const std::vector<Action>& drain_node() { return step(DirectiveReceived{DrainNode{}, {}}); }

  void to_starting(int nodes = 2) {
    start();
    assign(1, nodes);
  }
  void to_running(int nodes = 2) {
    to_starting(nodes);
    spawned(0);
    spawned(1);
    ASSERT_EQ(state(), AgentState::Running);
  }
  void to_running_live(int nodes = 2) {
    to_running(nodes);
    hello(0);
    hello(1);
  }
  void to_finished() {
    to_running();
    exits(0, 0);
    exits(1, 0);
    ASSERT_EQ(state(), AgentState::Finished);
  }
  void to_reforming() {
    to_running_live();
    rejoin();
    ASSERT_EQ(state(), AgentState::Reforming);
  }
  // Because of a change of membership.
  void to_stopping() {
    to_running();
    rejoin();
    ASSERT_EQ(state(), AgentState::Stopping);
  }
  void to_backoff() {
    start();
    step(JoinFailed{Refusal{RefuseReason::DuplicateNode, "another a is here"}});
    ASSERT_EQ(state(), AgentState::Backoff);
  }

  Config config_;
  Instant now_{};
  bool service_is_silent_ = false;

 private:
  std::optional<Supervisor> supervisor_;
  std::vector<Action> actions_;
};

}  // namespace lrun::agent
