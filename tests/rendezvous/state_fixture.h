// A rendezvous machine with a clock of its own, for tests that read as conversations.
//
// Owns the machine, the time and the answers that came. Every step is held against
// rendezvous/invariants. No real time passes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/events.h"
#include "rendezvous/invariants.h"
#include "rendezvous/state_machine.h"

namespace lrun::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Config config_of(int min_nodes, int max_nodes) {
  Config config;
  config.run_id = "job";
  config.min_nodes = min_nodes;
  config.max_nodes = max_nodes;
  config.max_restarts = 3;
  return config;
}

inline FirstCause exit_cause(const std::string& node, int code = 1) {
  FirstCause cause;
  cause.kind = FailureKind::ExitCode;
  cause.node = NodeId{node};
  cause.local_rank = LocalRank{0};
  cause.code = code;
  cause.sentence = "worker 0 of " + node + " ended with code " + std::to_string(code);
  return cause;
}

// What the test knows of one agent process.
struct FakeAgent {
  NodeFacts facts;
  Generation last_seen;
  std::optional<Assignment> assignment;
};

class StateFixture : public testing::Test {
 protected:
  // The machine under test begins its life; an earlier one is forgotten, as by a restart.
  void start(const Config& config, std::uint64_t term = 5) {
    config_ = config;
    machine_.emplace(config, term, now_);
    invariants_.emplace(machine_->status(now_));
    joins_.clear();
    watches_.clear();
    lookups_.clear();
  }

  // An invariant that does not hold.
  virtual void report(const std::string& sentence) { ADD_FAILURE() << sentence; }

  std::vector<Action> step(const Event& event) {
    auto actions = machine_->step(now_, event);
    const Status after = machine_->status(now_);
    const ObservedStep observed{now_, event, actions, after, machine_->next_deadline()};
    for (const std::string& broken : invariants_->check(observed)) report(broken);
    note(actions);
    return actions;
  }

  // Time goes by, and the machine is woken at each of its deadlines.
  void advance(Duration duration) {
    const Instant end = now_ + duration;
    for (int wakes = 0;; ++wakes) {
      if (wakes == 10'000) return report("deadlines without end");
      const auto deadline = machine_->next_deadline();
      if (!deadline || *deadline > end) break;
      now_ = std::max(now_, *deadline);
      step(TimePassed{});
    }
    now_ = end;
    step(TimePassed{});
  }

  // As `advance`, while these agents send a heartbeat each second and ask again when told to.
  void live(Duration duration, const std::vector<std::string>& agents) {
    for (Duration lived{}; lived < duration; lived += seconds(1)) {
      for (const std::string& node : agents) {
        heartbeat(node);
        if (is_to_ask_again(node)) join(node);
      }
      advance(seconds(1));
    }
  }

  FakeAgent& agent(const std::string& node) {
    auto [found, is_new] = agents_.try_emplace(node);
    if (is_new) {
      NodeFacts& facts = found->second.facts;
      facts.node = NodeId{node};
      facts.incarnation = Incarnation{100 + agents_.size()};
      facts.address = node + ".net";
      facts.master_port = 2000;
    }
    return found->second;
  }

  // A new process on the same node: another incarnation that has seen nothing.
  FakeAgent& renew_agent(const std::string& node) {
    FakeAgent& renewed = agent(node);
    renewed.facts.incarnation.value += 1000;
    renewed.last_seen = Generation{};
    renewed.assignment.reset();
    return renewed;
  }

  JoinRequest join_request(const std::string& node) {
    JoinRequest request;
    request.facts = agent(node).facts;
    request.run_id = config_.run_id;
    request.last_seen = agent(node).last_seen;
    return request;
  }

  Ticket join(const std::string& node) { return join(join_request(node)); }
  Ticket join(const JoinRequest& request) {
    const Ticket ticket = next_ticket();
    step(JoinReceived{ticket, request});
    take_assignment(request.facts.node.value, ticket);
    return ticket;
  }
  Ticket join_failed(const std::string& node) { return join_failed(node, exit_cause(node)); }
  Ticket join_failed(const std::string& node, const FirstCause& cause) {
    JoinRequest request = join_request(node);
    request.failure = cause;
    return join(request);
  }

  HeartbeatRequest heartbeat_request(const std::string& node) {
    HeartbeatRequest request;
    request.facts = agent(node).facts;
    request.run_id = config_.run_id;
    request.running = agent(node).assignment;
    request.state = AgentState::Running;
    if (!request.running) request.state = AgentState::Joining;
    return request;
  }
  using HeartbeatAnswer = std::variant<HeartbeatReply, Refusal>;
  HeartbeatAnswer heartbeat(const std::string& node) { return heartbeat(heartbeat_request(node)); }
  HeartbeatAnswer heartbeat(const HeartbeatRequest& request) {
    for (const Action& action : step(HeartbeatReceived{next_ticket(), request})) {
      if (const auto* reply = std::get_if<AnswerHeartbeat>(&action)) return reply->reply;
    }
    ADD_FAILURE() << "a heartbeat without an answer";
    return Refusal{};
  }
  Directive directive(const std::string& node) {
    const auto answer = heartbeat(node);
    const auto* reply = std::get_if<HeartbeatReply>(&answer);
    EXPECT_TRUE(reply) << "refused: " << std::get<Refusal>(answer).sentence;
    return reply ? reply->directive : Directive{};
  }

  Ticket watch(const std::string& node) {
    WatchRequest request;
    request.node = NodeId{node};
    request.incarnation = agent(node).facts.incarnation;
    request.run_id = config_.run_id;
    const Ticket ticket = next_ticket();
    step(WatchReceived{ticket, request});
    return ticket;
  }

  std::optional<Refusal> leave(const std::string& node, LeaveKind kind) {
    LeaveRequest request;
    request.node = NodeId{node};
    request.incarnation = agent(node).facts.incarnation;
    request.run_id = config_.run_id;
    request.generation = agent(node).last_seen;
    request.kind = kind;
    if (kind == LeaveKind::Failed) request.cause = exit_cause(node);
    return acknowledged(LeaveReceived{next_ticket(), request});
  }

  std::optional<Refusal> publish_value(Generation generation, const std::string& key,
                                       const std::string& value) {
    return acknowledged(PublishReceived{next_ticket(), {generation, key, value}});
  }
  Ticket look_up(Generation generation, const std::string& key) {
    const Ticket ticket = next_ticket();
    step(LookupReceived{ticket, {generation, key}});
    return ticket;
  }
  std::optional<Refusal> drain(const std::string& node) {
    return acknowledged(DrainReceived{next_ticket(), NodeId{node}});
  }
  void end_call(Ticket ticket) { step(CallEnded{ticket}); }

  // Both held calls of a killed process.
  void lose_connection(const std::string& node) {
    if (held_watch_.count(node)) end_call(held_watch_[node]);
  }
  void hold_watch(const std::string& node) { held_watch_[node] = watch(node); }

  // A group of these nodes, each with a held Watch.
  void form(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) join(node);
    while (phase() == Phase::LastCall) live(seconds(1), nodes);
    for (const std::string& node : nodes) {
      if (!agent(node).assignment) join(node);  // its held call was asked to ask again
      ASSERT_TRUE(agent(node).assignment) << node << " has no assignment";
      hold_watch(node);
    }
  }

  Status status() const { return machine_->status(now_); }
  Phase phase() const { return status().phase; }
  Generation generation() const { return status().generation; }
  std::optional<NodeStatus> node_status(const std::string& node) const {
    for (const NodeStatus& found : status().nodes) {
      if (found.facts.node.value == node) return found;
    }
    return std::nullopt;
  }

  std::optional<JoinReply> join_reply(Ticket ticket) const { return reply(joins_, ticket); }
  std::optional<WatchReply> watch_reply(Ticket ticket) const { return reply(watches_, ticket); }
  std::optional<LookupReply> lookup_reply(Ticket ticket) const { return reply(lookups_, ticket); }
  RefuseReason refused_join(Ticket ticket) const {
    const auto answer = join_reply(ticket);
    if (!answer || !std::holds_alternative<Refusal>(*answer)) {
      ADD_FAILURE() << "the Join was not refused";
      return RefuseReason::BadRequest;
    }
    return std::get<Refusal>(*answer).reason;
  }
  Directive watched(Ticket ticket) const {
    const auto answer = watch_reply(ticket);
    if (!answer || !std::holds_alternative<Directive>(*answer)) {
      ADD_FAILURE() << "the Watch has no directive";
      return Continue{};
    }
    return std::get<Directive>(*answer);
  }

  template <class Kind>
  std::vector<Kind> seen() const {
    std::vector<Kind> found;
    for (const Action& action : history_) {
      if (const auto* wanted = std::get_if<Kind>(&action)) found.push_back(*wanted);
    }
    return found;
  }

  Ticket next_ticket() { return Ticket{++last_ticket_}; }

  Instant now_{seconds(1000)};
  Config config_;
  std::optional<StateMachine> machine_;
  std::map<std::string, FakeAgent> agents_;
  std::map<std::string, Ticket> held_watch_;
  std::vector<Action> history_;

 private:
  template <class Reply>
  static std::optional<Reply> reply(const std::map<Ticket, Reply>& replies, Ticket ticket) {
    const auto found = replies.find(ticket);
    return found == replies.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<Refusal> acknowledged(const Event& event) {
    for (const Action& action : step(event)) {
      if (const auto* reply = std::get_if<Acknowledge>(&action)) return reply->refusal;
    }
    ADD_FAILURE() << "a call without an acknowledgement";
    return std::nullopt;
  }

  void note(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      history_.push_back(action);
      if (const auto* join = std::get_if<AnswerJoin>(&action)) {
        joins_[join->ticket] = join->reply;
        if (waiting_.count(join->ticket)) take_assignment(waiting_[join->ticket], join->ticket);
      }
      if (const auto* watch = std::get_if<AnswerWatch>(&action)) {
        watches_[watch->ticket] = watch->reply;
      }
      if (const auto* lookup = std::get_if<AnswerLookup>(&action)) {
        lookups_.insert_or_assign(lookup->ticket, lookup->reply);
      }
    }
  }

  bool is_to_ask_again(const std::string& node) const {
    const auto last = last_join_.find(node);
    if (last == last_join_.end()) return false;
    const auto answer = join_reply(last->second);
    return answer && std::holds_alternative<AskAgain>(*answer);
  }

  // The agent receives what its Join was answered, now or later.
  void take_assignment(const std::string& node, Ticket ticket) {
    waiting_[ticket] = node;
    last_join_[node] = std::max(last_join_[node], ticket);
    const auto answer = join_reply(ticket);
    if (!answer) return;
    if (const auto* assignment = std::get_if<Assignment>(&*answer)) {
      agent(node).assignment = *assignment;
      agent(node).last_seen = assignment->generation;
    }
  }

  std::uint64_t last_ticket_ = 0;
  std::optional<Invariants> invariants_;
  std::map<Ticket, JoinReply> joins_;
  std::map<Ticket, WatchReply> watches_;
  std::map<Ticket, LookupReply> lookups_;
  std::map<Ticket, std::string> waiting_;
  std::map<std::string, Ticket> last_join_;
};

}  // namespace lrun::rendezvous
