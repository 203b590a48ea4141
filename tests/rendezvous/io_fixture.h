// A loop that a test turns by hand, a service with its doors, and requests to send.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/client.h"
#include "rendezvous/server.h"
#include "rendezvous/service.h"

namespace lrun::rendezvous {

// A folder of the test's own, gone with its content.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "lrun_io_XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Long enough for a loaded machine; nothing waits for it when all is well.
inline constexpr auto kPatience = std::chrono::seconds(20);

class RendezvousIo : public testing::Test {
 protected:
  // Turns the loop until `holds`, or fails.
  void run_until(const std::function<bool()>& holds, Duration limit = kPatience) {
    const Instant deadline = std::chrono::steady_clock::now() + limit;
    while (!holds() && std::chrono::steady_clock::now() < deadline) {
      loop.restart();
      loop.run_one_for(std::chrono::milliseconds(50));
    }
    ASSERT_TRUE(holds()) << "did not come within the limit";
  }

  // Turns the loop for a while in which something must not happen.
  void run_for(Duration duration) {
    loop.restart();
    loop.run_for(duration);
  }

  void serve(int min_nodes, int max_nodes) {
    Service::Options options;
    options.config.run_id = "run";
    options.config.min_nodes = min_nodes;
    options.config.max_nodes = max_nodes;
    options.config.last_call = std::chrono::milliseconds(100);
    service = std::make_unique<Service>(loop, std::move(options),
                                        [this](const JobClosed& closed) { job_closed = closed; });
  }

  void open_doors(const std::vector<std::string>& endpoints,
                  std::optional<Credentials> credentials = std::nullopt,
                  bool insecure_network = false) {
    Server::Options options{.listen = {},
                            .credentials = std::move(credentials),
                            .insecure_network = insecure_network,
                            .memory_bytes_max = memory_bytes_max};
    for (const std::string& each : endpoints) options.listen.push_back(parse_endpoint(each));
    server = std::make_unique<Server>(loop, *service, std::move(options));
  }

  static Client::Options options_for(const Endpoint& endpoint) {
    Client::Options options;
    options.endpoints = {endpoint};
    options.run_id = "run";
    return options;
  }

  std::unique_ptr<Client> client_of(const Endpoint& endpoint) {
    return std::make_unique<Client>(loop, options_for(endpoint));
  }

  static JoinRequest join_of(const std::string& node) {
    JoinRequest request;
    request.facts.node = NodeId{node};
    request.facts.incarnation = Incarnation{std::hash<std::string>{}(node)};
    request.facts.slots = 2;
    request.run_id = "run";
    return request;
  }

  static WatchRequest watch_of(const std::string& node) {
    const JoinRequest join = join_of(node);
    return {.node = join.facts.node, .incarnation = join.facts.incarnation, .run_id = "run"};
  }

  // The value of an answer that reached the service; fails the test otherwise.
  template <class Reply>
  static Reply reply_of(const std::optional<Answer<Reply>>& answer) {
    if (const auto* why = std::get_if<Unreachable>(&*answer)) {
      ADD_FAILURE() << why->sentence;
      return {};
    }
    return std::get<0>(*answer);
  }

  // Asks for the status and waits for what comes.
  Answer<Client::StatusAnswer> ask_status(Client::Options options) {
    Client client(loop, std::move(options));
    std::optional<Answer<Client::StatusAnswer>> answer;
    client.get_status([&](Answer<Client::StatusAnswer> given) { answer = std::move(given); });
    run_until([&] { return answer.has_value(); });
    return answer.value_or(Unreachable{});
  }

  Unreachable expect_unreachable(Client::Options options) {
    const auto answer = ask_status(std::move(options));
    if (const auto* why = std::get_if<Unreachable>(&answer)) return *why;
    ADD_FAILURE() << "the call got through";
    return {};
  }

  void expect_served(Client::Options options) {
    const auto answer = ask_status(std::move(options));
    if (const auto* why = std::get_if<Unreachable>(&answer)) FAIL() << why->sentence;
    EXPECT_TRUE(std::holds_alternative<Status>(std::get<0>(answer)));
  }

  std::size_t memory_bytes_max = Server::Options{}.memory_bytes_max;
  boost::asio::io_context loop;
  std::optional<JobClosed> job_closed;
  std::unique_ptr<Service> service;
  std::unique_ptr<Server> server;
};

}  // namespace lrun::rendezvous
