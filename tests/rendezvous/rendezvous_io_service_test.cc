// Agents and their service over real sockets.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <map>

#include "rendezvous/local_link.h"
#include "tests/rendezvous/io_fixture.h"

namespace lrun::rendezvous {
namespace {

using testing::HasSubstr;

// One agent's side: its link and what it has heard.
struct Agent {
  std::string name;
  std::unique_ptr<Link> link;
  std::optional<Answer<JoinReply>> joined = std::nullopt;
  std::optional<Answer<WatchReply>> watched = std::nullopt;
};

class RendezvousIoService : public RendezvousIo {
 protected:
  void join(Agent& agent) {
    agent.link->join(join_of(agent.name),
                     [&agent](Answer<JoinReply> answer) { agent.joined = std::move(answer); });
  }
  void watch(Agent& agent) {
    agent.link->watch(watch_of(agent.name),
                      [&agent](Answer<WatchReply> answer) { agent.watched = std::move(answer); });
  }
  Assignment assignment_of(const Agent& agent) {
    const JoinReply reply = reply_of<JoinReply>(agent.joined);
    if (const auto* assignment = std::get_if<Assignment>(&reply)) return *assignment;
    ADD_FAILURE() << agent.name << " got no assignment";
    return {};
  }
  const NodeStatus* status_of(const std::string& name) {
    status = service->status();
    for (const NodeStatus& node : status.nodes) {
      if (node.facts.node.value == name) return &node;
    }
    return nullptr;
  }
  Status status;
  TemporaryFolder folder;
};

TEST_F(RendezvousIoService, ThreeAgentsOnThreeKindsOfLinkFormOneGroup) {
  serve(3, 3);
  open_doors({"unix:" + folder / "s", "127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  Agent b{"b", client_of(server->endpoints()[1])};
  Agent c{"c", std::make_unique<LocalLink>(*service)};
  for (Agent* agent : {&a, &b, &c}) join(*agent);
  run_until([&] { return a.joined && b.joined && c.joined; });

  std::map<int, int> first_global_rank_of_group_rank;
  for (const Agent* agent : {&a, &b, &c}) {
    const Assignment assignment = assignment_of(*agent);
    EXPECT_EQ(assignment.world_size, 6);
    EXPECT_EQ(assignment.generation, assignment_of(a).generation);
    first_global_rank_of_group_rank[assignment.group_rank.value] =
        assignment.first_global_rank.value;
  }
  EXPECT_EQ(first_global_rank_of_group_rank, (std::map<int, int>{{0, 0}, {1, 2}, {2, 4}}));
}

TEST_F(RendezvousIoService, AnAddressThatWasLeftEmptyIsTheConnectionsOwn) {
  serve(2, 2);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  EXPECT_EQ(a.link->local_address(), "127.0.0.1");
  join(a);
  run_until([&] { return status_of("a") != nullptr; });
  EXPECT_EQ(status_of("a")->facts.address, "127.0.0.1");
}

TEST_F(RendezvousIoService, AHeldWatchHearsAnOrderAtOnce) {
  serve(1, 1);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  join(a);
  run_until([&] { return a.joined.has_value(); });
  watch(a);
  run_for(std::chrono::milliseconds(100));
  ASSERT_FALSE(a.watched) << "nothing to say yet";

  std::optional<Answer<AcknowledgeAnswer>> stopped;
  Client person(loop, options_for(server->endpoints()[0]));
  person.stop("enough", [&](Answer<AcknowledgeAnswer> answer) { stopped = std::move(answer); });
  run_until([&] { return a.watched && stopped; }, std::chrono::seconds(5));
  const WatchReply reply = reply_of<WatchReply>(a.watched);
  ASSERT_TRUE(std::holds_alternative<Directive>(reply));
  EXPECT_TRUE(std::holds_alternative<StopJob>(std::get<Directive>(reply)));
  ASSERT_TRUE(job_closed);
  EXPECT_EQ(job_closed->outcome, Outcome::Stopped);
}

TEST_F(RendezvousIoService, AClosedConnectionIsGoneLongBeforeItsLeaseEnds) {
  serve(2, 2);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  Agent b{"b", client_of(server->endpoints()[0])};
  join(a);
  join(b);
  run_until([&] { return a.joined && b.joined; });
  watch(a);
  watch(b);
  run_for(std::chrono::milliseconds(100));

  const Instant cut = std::chrono::steady_clock::now();
  b.link.reset();
  run_until([&] { return a.watched.has_value(); }, std::chrono::seconds(4));
  EXPECT_LT(std::chrono::steady_clock::now() - cut, Service::Options{}.config.lease);
  const WatchReply reply = reply_of<WatchReply>(a.watched);
  ASSERT_TRUE(std::holds_alternative<Directive>(reply));
  EXPECT_TRUE(std::holds_alternative<Rejoin>(std::get<Directive>(reply)));
  EXPECT_FALSE(b.watched) << "a link that is gone answers nobody";
}

TEST_F(RendezvousIoService, ALocalLinkThatDiesIsGoneToo) {
  serve(2, 2);
  Agent a{"a", std::make_unique<LocalLink>(*service)};
  Agent b{"b", std::make_unique<LocalLink>(*service)};
  join(a);
  EXPECT_FALSE(a.joined) << "never from inside the call";
  join(b);
  run_until([&] { return a.joined && b.joined; });
  watch(a);
  watch(b);
  b.link.reset();
  run_until([&] { return a.watched.has_value(); }, std::chrono::seconds(4));
  EXPECT_FALSE(b.watched);
}

TEST_F(RendezvousIoService, AnotherRunIsRefusedWithBothNamed) {
  serve(1, 1);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  JoinRequest request = join_of("a");
  request.run_id = "other";
  a.link->join(request, [&](Answer<JoinReply> answer) { a.joined = std::move(answer); });
  run_until([&] { return a.joined.has_value(); });
  const JoinReply reply = reply_of<JoinReply>(a.joined);
  ASSERT_TRUE(std::holds_alternative<Refusal>(reply));
  EXPECT_EQ(std::get<Refusal>(reply).reason, RefuseReason::WrongRun);
  EXPECT_THAT(std::get<Refusal>(reply).sentence, HasSubstr("'other'"));
  EXPECT_THAT(std::get<Refusal>(reply).sentence, HasSubstr("'run'"));
  EXPECT_TRUE(service->status().nodes.empty());
}

TEST_F(RendezvousIoService, ValuesTravelUnchangedZeroBytesIncluded) {
  serve(1, 1);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  join(a);
  run_until([&] { return a.joined.has_value(); });
  const Generation generation = assignment_of(a).generation;
  const std::string value("\x00\xff\x80 id", 6);

  std::optional<Answer<LookupReply>> found;
  std::optional<Answer<AcknowledgeAnswer>> published;
  a.link->lookup({generation, "nccl"}, [&](auto answer) { found = std::move(answer); });
  run_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(found) << "held until there is a value";
  a.link->publish({generation, "nccl", value}, [&](auto answer) { published = answer; });
  run_until([&] { return found && published; });
  EXPECT_EQ(std::get<std::string>(reply_of<LookupReply>(found)), value);

  a.link->publish({generation, "nccl", std::string(5000, 'x')},
                  [&](auto answer) { published = answer; });
  published.reset();
  run_until([&] { return published.has_value(); });
  const AcknowledgeAnswer answer = reply_of<AcknowledgeAnswer>(published);
  ASSERT_TRUE(std::holds_alternative<Refusal>(answer));
  EXPECT_THAT(std::get<Refusal>(answer).sentence, HasSubstr("4096"));
}

// --- addresses
// -------------------------------------------------------------------------------------

TEST_F(RendezvousIoService, APortThatIsTakenIsOneClearLine) {
  serve(1, 1);
  open_doors({"127.0.0.1:0"});
  const std::string endpoint = to_string(server->endpoints()[0]);
  Service second(loop, {}, [](const JobClosed&) {});
  Server::Options options;
  options.listen = {parse_endpoint(endpoint)};
  try {
    Server refused(loop, second, options);
    FAIL() << "two services bound one port";
  } catch (const ListenError& error) {
    EXPECT_TRUE(error.is_taken);
    EXPECT_THAT(error.what(), HasSubstr(endpoint));
    EXPECT_THAT(error.what(), HasSubstr("--rdzv-endpoint"));
  }
}

TEST_F(RendezvousIoService, ASocketThatLivesIsRefusedAndADeadOneReplaced) {
  const std::string path = folder / "s";
  serve(1, 1);
  open_doors({"unix:" + path});
  struct stat mode {};
  ASSERT_EQ(::stat(path.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0600u);
  Server::Options options;
  options.listen = {parse_endpoint("unix:" + path)};
  EXPECT_THROW(Server(loop, *service, options), ListenError);
  expect_served(options_for(server->endpoints()[0]));

  server.reset();
  EXPECT_FALSE(std::filesystem::exists(path)) << "closing leaves no socket behind";
  // What kill -9 leaves: a socket that nobody serves.
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(dead);
  EXPECT_THAT(expect_unreachable(options_for(options.listen[0])).sentence,
              HasSubstr("refuses connections"));
  open_doors({"unix:" + path});
  expect_served(options_for(server->endpoints()[0]));
}

TEST_F(RendezvousIoService, BeyondThisMachineNeedsKeysOrConsent) {
  serve(1, 1);
  EXPECT_THROW(open_doors({"0.0.0.0:0"}), ListenError);
  open_doors({"0.0.0.0:0"}, std::nullopt, true);
  EXPECT_GT(server->endpoints()[0].port, 0);
}

// --- ways of not reaching a service
// ------------------------------------------------------------------

// B001: the three cases give three different lines.
TEST_F(RendezvousIoService, RefusedMissingAndMuteAreToldApart) {
  const Unreachable refused = expect_unreachable(options_for({.host = "127.0.0.1", .port = 1}));
  EXPECT_THAT(refused.sentence, HasSubstr("127.0.0.1:1 refuses connections"));
  EXPECT_TRUE(refused.host_answered);
  EXPECT_FALSE(refused.is_final);

  const Unreachable missing = expect_unreachable(options_for({.unix_path = folder / "none"}));
  EXPECT_THAT(missing.sentence, HasSubstr("does not exist"));

  const Unreachable unknown = expect_unreachable([&] {
    Client::Options options = options_for({.host = "no-such-host.invalid", .port = 1});
    options.insecure_network = true;
    return options;
  }());
  EXPECT_THAT(unknown.sentence, HasSubstr("cannot be resolved"));
  EXPECT_FALSE(unknown.host_answered);
}

TEST_F(RendezvousIoService, TheNextEndpointOfAListIsTried) {
  serve(1, 1);
  open_doors({"127.0.0.1:0"});
  Client::Options options = options_for({.host = "127.0.0.1", .port = 1});
  options.endpoints.push_back(server->endpoints()[0]);
  Client client(loop, options);
  std::optional<Answer<Client::StatusAnswer>> answer;
  const auto ask = [&] {
    answer.reset();
    client.get_status([&](Answer<Client::StatusAnswer> given) { answer = std::move(given); });
    run_until([&] { return answer.has_value(); });
  };
  ask();
  ASSERT_TRUE(std::holds_alternative<Unreachable>(*answer));
  EXPECT_THAT(std::get<Unreachable>(*answer).sentence, HasSubstr("127.0.0.1:1"));
  for (int again = 0; again < 2; ++again) {
    ask();
    EXPECT_FALSE(std::holds_alternative<Unreachable>(*answer)) << "what answered stays first";
  }
}

// --- ends
// ------------------------------------------------------------------------------------------

TEST_F(RendezvousIoService, ShuttingDownAnswersHeldCallsAndLeavesNothing) {
  serve(2, 2);
  open_doors({"127.0.0.1:0"});
  Agent a{"a", client_of(server->endpoints()[0])};
  join(a);
  run_until([&] { return status_of("a") != nullptr; });

  const Instant start = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3 * Server::kShutdownLimit);
  run_until([&] { return a.joined.has_value(); });
  ASSERT_TRUE(std::holds_alternative<Unreachable>(*a.joined));
  EXPECT_TRUE(std::get<Unreachable>(*a.joined).host_answered);
  a.link.reset();
  service.reset();
  loop.restart();
  while (loop.poll() > 0) loop.restart();
  loop.restart();
  EXPECT_EQ(loop.run_for(std::chrono::milliseconds(50)), 0u) << "the loop has nothing left";
  EXPECT_TRUE(loop.stopped());
}

TEST_F(RendezvousIoService, AClientMayBeDestroyedByItsOwnAnswer) {
  serve(2, 2);
  open_doors({"127.0.0.1:0"});
  auto client = client_of(server->endpoints()[0]);
  bool is_gone = false;
  client->join(join_of("a"), [](auto) { FAIL() << "dropped with the client"; });
  client->get_status([&](auto) {
    client.reset();
    is_gone = true;
  });
  run_until([&] { return is_gone; });
  run_for(std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace lrun::rendezvous
