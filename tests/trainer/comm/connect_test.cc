// Connecting: who is trusted, and who is named when somebody does not come.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <sstream>
#include <thread>

#include "tests/trainer/comm/process_world.h"
#include "tests/trainer/comm/world.h"
#include "trainer/comm/handshake.h"
#include "trainer/comm/socket.h"

namespace lrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto kPatience = std::chrono::seconds(30);

// Where rank 0 said that it can be reached.
struct Published {
  std::string host;
  int port = 0;
  std::string unix_name;
};

Published address_of(MemoryBootstrap& bootstrap, int rank) {
  std::istringstream words(bootstrap.lookup("comm/" + std::to_string(rank), kPatience));
  Published published;
  words >> published.host >> published.port >> published.unix_name;
  return published;
}

Greeting greeting_of_rank_1(MemoryBootstrap& bootstrap) {
  Greeting greeting;
  greeting.term = 3;
  greeting.number = 7;
  greeting.rank = 1;
  greeting.world_size = 2;
  const std::string hex = bootstrap.lookup("comm/nonce", kPatience);
  for (std::size_t i = 0; i < greeting.nonce.size(); ++i) {
    greeting.nonce[i] = static_cast<std::uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return greeting;
}

bool wait_for(const Fd& socket, short events) {
  pollfd waiting{socket.get(), events, 0};
  return ::poll(&waiting, 1, 30'000) == 1;
}

// What rank 0 does with a connection that begins with these bytes: "closed" or "answered".
std::string reaction_to(Fd socket, const void* bytes, std::size_t size) {
  if (!wait_for(socket, POLLOUT) || !send_message(socket, bytes, size, {})) return "not connected";
  if (!wait_for(socket, POLLIN)) return "silent";
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) == 1 ? "answered" : "closed";
}

class Strangers : public testing::TestWithParam<bool> {
 protected:
  // Rank 0 of two waits for rank 1; `test` plays a stranger; then the real rank 1 comes.
  void with_waiting_rank(const std::function<void()>& test) {
    auto rank_0 = std::async(std::launch::async, [this] {
      Comm::connect(world_.options_of(GlobalRank{0}), &bootstrap_)->barrier();
    });
    test();
    Comm::connect(world_.options_of(GlobalRank{1}), &bootstrap_)->barrier();
    EXPECT_NO_THROW(rank_0.get());
  }
  Fd dial() {
    const Published address = address_of(bootstrap_, 0);
    return GetParam() ? dial_unix(address.unix_name) : dial_tcp(address.host, address.port, 0);
  }
  std::string reaction_to_greeting(const std::function<void(Greeting&)>& change) {
    Greeting greeting = greeting_of_rank_1(bootstrap_);
    change(greeting);
    return reaction_to(dial(), &greeting, sizeof greeting);
  }

  World world_{.size = 2};
  MemoryBootstrap bootstrap_;
};

TEST_P(Strangers, AreClosedUnlessTheyBelongToTheGeneration) {
  with_waiting_rank([this] {
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.nonce[7] ^= 1; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.nonce = {}; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.number = 6; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.version = 2; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.world_size = 3; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.rank = 0; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.rank = 2; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.rank = -1; }), "closed");
    EXPECT_EQ(reaction_to_greeting([](Greeting& g) { g.purpose = 99; }), "closed");
    const std::string http(sizeof(Greeting), 'G');
    EXPECT_EQ(reaction_to(dial(), http.data(), http.size()), "closed");
  });
}

// The counterpart: the same bytes with the right nonce are answered, so the test above means it.
TEST_P(Strangers, TheRightNonceIsAnswered) {
  auto rank_0 = std::async(std::launch::async, [this] {
    Comm::Options options = world_.options_of(GlobalRank{0});
    options.connect_deadline = milliseconds(500);
    return outcome_of([&] { Comm::connect(options, &bootstrap_); });
  });
  EXPECT_EQ(reaction_to_greeting([](Greeting&) {}), "answered");
  EXPECT_THAT(rank_0.get(), HasSubstr("rank 1 did not connect to rank 0 within 500 ms"));
}

TEST_P(Strangers, ThatSayNothingKeepNobodyOut) {
  std::vector<Fd> silent;
  with_waiting_rank([&] {
    for (int i = 0; i < 50; ++i) silent.push_back(dial());
  });
}

INSTANTIATE_TEST_SUITE_P(Sockets, Strangers, testing::Bool(),
                         [](const auto& test) { return test.param ? "Unix" : "Tcp"; });

std::vector<std::string> connect_some(int world_size, const std::vector<int>& present,
                                      Transport transport) {
  World world{.size = world_size, .transport = transport};
  MemoryBootstrap bootstrap;
  std::vector<std::future<std::string>> ranks;
  for (const int rank : present) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      Comm::Options options = world.options_of(GlobalRank{rank});
      options.connect_deadline = milliseconds(1500);
      return outcome_of([&] { Comm::connect(options, &bootstrap); });
    }));
  }
  std::vector<std::string> outcomes;
  for (auto& rank : ranks) outcomes.push_back(rank.get());
  return outcomes;
}

TEST(Connect, NamesTheRankThatDoesNotCome) {
  for (const Transport transport : {Transport::SharedMemory, Transport::Tcp, Transport::Mixed}) {
    const auto outcomes = connect_some(4, {0, 1, 2}, transport);
    for (const std::string& outcome : outcomes) {
      EXPECT_THAT(outcome, AllOf(HasSubstr("DeadlineExceeded: rank 3 did not connect"),
                                 Not(HasSubstr("rank 1,"))));
    }
  }
}

TEST(Connect, NamesTheLowerRankThatIsMissing) {
  const auto outcomes = connect_some(3, {0, 2}, Transport::Tcp);
  EXPECT_THAT(outcomes[0], HasSubstr("rank 1"));
  EXPECT_THAT(outcomes[1],
              HasSubstr("DeadlineExceeded: rank 1 has not said within 1500 ms where it can be "
                        "reached ('comm/1' is not published)"));
}

TEST(Connect, NamesRankZeroWhenThereIsNoNonce) {
  EXPECT_THAT(connect_some(2, {1}, Transport::Tcp)[0],
              HasSubstr("rank 0 has not said within 1500 ms"));
}

TEST(Connect, RefusesWhatIsNoAddress) {
  World world{.size = 2};
  MemoryBootstrap bootstrap;
  bootstrap.publish("comm/nonce", "00112233445566778899aabbccddeeff");
  bootstrap.publish("comm/0", "nonsense");
  EXPECT_THAT(outcome_of([&] { Comm::connect(world.options_of(GlobalRank{1}), &bootstrap); }),
              HasSubstr("'comm/0' holds 'nonsense', which is no address"));
  bootstrap.publish("comm/nonce", "short");
  EXPECT_THAT(outcome_of([&] { Comm::connect(world.options_of(GlobalRank{1}), &bootstrap); }),
              HasSubstr("which is no nonce"));
}

// A name that this machine answers to, as a cluster gives it, and no name at all.
TEST(Connect, HostsMayBeNamesOrEmpty) {
  for (const std::string host : {"localhost", "", "::1"}) {
    World world{.size = 2, .transport = Transport::Tcp};
    MemoryBootstrap bootstrap;
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        Comm::Options options = world.options_of(GlobalRank{rank});
        options.host = host;
        return outcome_of([&] { Comm::connect(options, &bootstrap)->barrier(); });
      }));
    }
    for (auto& rank : ranks) EXPECT_EQ(rank.get(), "") << "host '" << host << "'";
  }
}

}  // namespace
}  // namespace lrun::comm
