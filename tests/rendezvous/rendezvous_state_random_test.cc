// Any order of anything: the invariants hold, and calm brings every healthy node into one group.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/rendezvous/state_fixture.h"

namespace lrun::rendezvous {
namespace {

// Agents that do what they like: lose answers, repeat requests, die and come back.
class Chaos : public StateFixture {
 public:
  void TestBody() override {}

  void play() {
    Config config = config_of(*rc::gen::inRange(1, 3), *rc::gen::inRange(3, 5));
    config.max_restarts = *rc::gen::inRange(0, 50);
    config.may_have_predecessor = *rc::gen::arbitrary<bool>();
    config.grow_cooldown = seconds(*rc::gen::elementOf(std::vector<int>{0, 0, 20}));
    start(config);
    const int deeds = *rc::gen::inRange(1, 80);
    for (int i = 0; i < deeds && broken_.empty(); ++i) act();
    if (broken_.empty() && phase() != Phase::Closed) calm_down();
  }

  const std::vector<std::string>& broken() const { return broken_; }

 protected:
  // Collected instead of failing at once, so that the sequence can be shrunk.
  void report(const std::string& sentence) override { broken_.push_back(sentence); }

 private:
  void act() {
    const std::string node = *rc::gen::elementOf(kNodes);
    switch (*rc::gen::weightedElement<int>({{12, 0},
                                            {10, 1},
                                            {8, 2},
                                            {3, 3},
                                            {4, 4},
                                            {4, 5},
                                            {1, 6},
                                            {2, 7},
                                            {1, 8},
                                            {2, 9},
                                            {10, 10},
                                            {3, 11},
                                            {1, 12}})) {
      case 0:
        last_join_ticket_[node] = join(node);
        return;
      case 1:
        heartbeat(node);
        return;
      case 2:
        return hold_watch(node);
      case 3:
        return lose_connection(node);
      case 4:
        join_failed(node);
        return;
      case 5:
        renew_agent(node);
        return;
      case 6:
        leave(node, *rc::gen::element(LeaveKind::Drained, LeaveKind::Succeeded, LeaveKind::Failed));
        return;
      case 7:
        look_up(agent(node).last_seen, "key");
        step(PublishReceived{next_ticket(), {agent(node).last_seen, "key", "value"}});
        return;
      case 8:
        drain(node);
        return;
      case 9:
        end_call(last_join_ticket_[node]);
        return;
      case 10:
        return advance(milliseconds(*rc::gen::inRange(1, 4000)));
      case 11:
        agent(node).last_seen = Generation{};  // its answer was lost
        agent(node).assignment.reset();
        return;
      default:
        return forget_everything();
    }
  }

  // The service dies and starts again.
  void forget_everything() {
    Config config = config_;
    config.may_have_predecessor = true;
    start(config, ++term_);
    held_watch_.clear();
  }

  // After the last fault: every node, in a fresh process, does as it is told.
  void calm_down() {
    advance(config_.lease + config_.gone_grace);
    for (const std::string& node : kNodes) renew_agent(node);
    for (int i = 0; i < 120 && phase() != Phase::Closed; ++i) {
      for (const std::string& node : kNodes) obey(node);
      advance(seconds(1));
    }
    if (phase() == Phase::Closed) return;
    const Status calm = status();
    int seated = 0;
    for (const NodeStatus& node : calm.nodes) seated += node.role == Role::Participant ? 1 : 0;
    if (calm.phase != Phase::Active) report("no group runs although all is calm");
    if (seated != std::min<int>(calm.config.max_nodes, static_cast<int>(kNodes.size()))) {
      report(std::to_string(seated) + " nodes run although all are well");
    }
  }

  void obey(const std::string& node) {
    const HeartbeatAnswer answer = heartbeat(node);
    const auto* reply = std::get_if<HeartbeatReply>(&answer);
    const bool is_to_join = reply && std::holds_alternative<Rejoin>(reply->directive);
    if (is_to_join || (!reply && is_retryable(std::get<Refusal>(answer).reason))) join(node);
  }

  inline static const std::vector<std::string> kNodes = {"n1", "n2", "n3", "n10"};
  std::map<std::string, Ticket> last_join_ticket_;
  std::uint64_t term_ = 5;
  std::vector<std::string> broken_;
};

RC_GTEST_PROP(RendezvousInAnyOrder, HoldsItsInvariantsAndRecovers, ()) {
  Chaos chaos;
  chaos.play();
  RC_ASSERT(chaos.broken() == std::vector<std::string>());
}

}  // namespace
}  // namespace lrun::rendezvous
