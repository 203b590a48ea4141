#include "launcher/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/launcher/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  ~PlaceTest() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  Place placed(std::vector<std::string> words, Role role = Role::Run,
               const Scheduler& scheduler = NoScheduler{}) {
    auto chosen = choose(std::move(words), role, scheduler);
    if (auto* error = std::get_if<UsageError>(&chosen)) {
      ADD_FAILURE() << error->sentence;
      return {};
    }
    return std::get<Place>(std::move(chosen));
  }
  std::string refused(std::vector<std::string> words, Role role = Role::Run) {
    auto chosen = choose(std::move(words), role, NoScheduler{});
    auto* error = std::get_if<UsageError>(&chosen);
    return error == nullptr ? "accepted" : error->sentence;
  }

  TemporaryFolder folder_;

 private:
  static std::variant<Place, UsageError> choose(std::vector<std::string> words, Role role,
                                                const Scheduler& scheduler) {
    words.emplace_back("/bin/true");
    const auto command = std::get<RunCommand>(parse_run(words, {}));
    return choose_place(command.options, role, scheduler, command.program);
  }
};

TEST_F(PlaceTest, OneNodeServesItselfAndOpensItsSocketLater) {
  const Place place = placed({"--nproc=2"});
  EXPECT_TRUE(place.serves);
  EXPECT_FALSE(place.socket_is_needed);
  EXPECT_THAT(place.listen, IsEmpty());
  EXPECT_EQ(place.run_id, "none");
  EXPECT_EQ(place.address, "127.0.0.1");
}

// B012: single-machine jobs have no fixed port and never collide.
TEST_F(PlaceTest, StandaloneJobsHaveNamesOfTheirOwn) {
  Place first = placed({"--standalone", "--rdzv-id=mine", "--rdzv-endpoint=x:1"});
  first.discovery_lock.reset();
  const Place second = placed({"--standalone", "--rdzv-id=mine"});
  EXPECT_NE(first.run_id, second.run_id);
  EXPECT_THAT(first.listen, IsEmpty());
}

TEST_F(PlaceTest, SeveralNodesWithoutEndpointServeASocketAndAPort) {
  const Place place = placed({"--nnodes=2"});
  EXPECT_TRUE(place.serves);
  EXPECT_TRUE(place.socket_is_needed);
  EXPECT_THAT(place.run_id, ::testing::StartsWith("true-"));
}

// B004, B026: who serves is decided on addresses, and one process serves at most.
TEST_F(PlaceTest, TheHostOfTheEndpointServes) {
  const Place local = placed({"--nnodes=2", "--rdzv-endpoint=localhost:29555"});
  EXPECT_TRUE(local.serves);
  EXPECT_TRUE(local.joins_if_taken);
  EXPECT_FALSE(local.leaves_machine);
  EXPECT_EQ(local.listen.front().host, "127.0.0.1");
  const Place far = placed({"--nnodes=2", "--rdzv-endpoint=192.0.2.1:29555"});
  EXPECT_FALSE(far.serves);
  EXPECT_TRUE(far.leaves_machine);
  EXPECT_THAT(far.join, SizeIs(1));
  EXPECT_FALSE(placed({"--nnodes=2", "--rdzv-endpoint=localhost:29555"}, Role::AgentOnly).serves);
}

// B007: a port that nobody can learn.
TEST_F(PlaceTest, PortZeroIsForOneNode) {
  EXPECT_THAT(refused({"--nnodes=2", "--rdzv-endpoint=localhost:0"}), HasSubstr("port 0"));
  EXPECT_EQ(refused({"--nnodes=1", "--rdzv-endpoint=localhost:0"}), "accepted");
  EXPECT_THAT(refused({"--nnodes=1", "--rdzv-endpoint=192.0.2.1:0"}), HasSubstr("port 0"));
}

TEST_F(PlaceTest, RefusesAnAgentWithoutService) {
  EXPECT_THAT(refused({}, Role::AgentOnly), HasSubstr("--rdzv-endpoint"));
  EXPECT_THAT(refused({"--node-rank=1"}), HasSubstr("not below"));
}

TEST_F(PlaceTest, SlurmsFirstHostServes) {
  SlurmStep step{.nodes = 2,
                 .node_rank = 0,
                 .hosts = {"n1", "n2"},
                 .run_id = "17.0",
                 .first_port = 20000,
                 .slots = 3};
  Place first = placed({}, Role::Run, step);
  EXPECT_TRUE(first.serves);
  EXPECT_EQ(first.run_id, "17.0");
  EXPECT_EQ(first.slots, 3);
  EXPECT_EQ(first.nodes.min, 2);
  EXPECT_EQ(first.fixed_rank, GroupRank{0});
  EXPECT_THAT(first.listen, SizeIs(kSlurmPortTries));
  first.discovery_lock.reset();
  step.node_rank = 1;
  const Place second = placed({}, Role::Run, step);
  EXPECT_FALSE(second.serves);
  EXPECT_EQ(second.join.back().host, "n1");
  const Place chosen = placed({"--nproc=1", "--rdzv-id=mine"}, Role::Run, step);
  EXPECT_EQ(chosen.slots, 1) << "an option wins over the scheduler";
  EXPECT_EQ(chosen.run_id, "mine");
}

}  // namespace
}  // namespace lrun::launcher
