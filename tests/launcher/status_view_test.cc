#include "launcher/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

rendezvous::Status two_nodes() {
  rendezvous::Status status;
  status.config.run_id = "job\"7";
  status.config.min_nodes = 2;
  status.config.max_nodes = 2;
  status.config.max_restarts = 3;
  status.phase = rendezvous::Phase::Active;
  status.generation = {1700000000, 2};
  status.world_size = 4;
  status.restarts_spent = 1;
  status.restarts_by_kind[FailureKind::Signal] = 1;
  for (int i = 0; i < 2; ++i) {
    rendezvous::NodeStatus node;
    node.facts.node = {"a-host-with-quite-a-long-name.example.org#" + std::to_string(i)};
    node.facts.slots = 2;
    node.role = rendezvous::Role::Participant;
    node.state = AgentState::Running;
    node.assignment = Assignment{};
    node.assignment->group_rank = {i};
    node.assignment->first_global_rank = {2 * i};
    node.progress.step = 40 + i;
    status.nodes.push_back(node);
  }
  return status;
}

TEST(StatusView, JsonHasStableKeys) {
  const auto json = nlohmann::json::parse(status_as_json(two_nodes()));
  EXPECT_EQ(json.at("schema"), kStatusSchema);
  EXPECT_EQ(json.at("run_id"), "job\"7");
  EXPECT_EQ(json.at("phase"), "active");
  EXPECT_EQ(json.at("generation"), "1700000000.2");
  EXPECT_EQ(json.at("world_size"), 4);
  EXPECT_EQ(json.at("restarts_by_cause").at("signal"), 1);
  EXPECT_EQ(json.at("nodes").at(1).at("first_global_rank"), 2);
  EXPECT_EQ(json.at("nodes").at(1).at("step"), 41);
  EXPECT_TRUE(json.at("outcome").is_null());
}

TEST(StatusView, TextFitsEightyColumns) {
  const std::string text = status_as_text(two_nodes(), 80);
  EXPECT_THAT(text, HasSubstr("2 of 2:2 nodes, 4 workers; restarts 1 of 3"));
  EXPECT_THAT(text, HasSubstr("participant"));
  const std::string rows = text.substr(text.find("NODE"));
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = rows.find('\n', begin);
    EXPECT_LE(end - begin, 80U + 2) << "two bytes more for the ellipsis";
    begin = end + 1;
  }
}

TEST(StatusView, ExitCodeTellsHealth) {
  rendezvous::Status status = two_nodes();
  EXPECT_EQ(status_exit_code(status), 0);
  status.nodes.pop_back();
  EXPECT_EQ(status_exit_code(status), 1) << "below MIN";
  status.outcome = Outcome::Succeeded;
  EXPECT_EQ(status_exit_code(status), 0);
  status.outcome = Outcome::Failed;
  EXPECT_EQ(status_exit_code(status), 1);
}

}  // namespace
}  // namespace lrun::launcher
