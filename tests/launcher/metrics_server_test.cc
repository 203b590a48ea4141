#include "launcher/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace lrun::launcher {
namespace {

namespace asio = boost::asio;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::chrono::seconds kLimit{20};

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServerTest()
      : server_(
            loop_, {}, registry_, [this] { ++refreshed_; },
            [] {
              return Health{true, "well"};
            },
            [this] {
              return Health{is_ready_, "because"};
            }) {
    prometheus::BuildGauge().Name("lrun_test_value").Register(registry_).Add({}).Set(7);
  }

  // Sends raw bytes and returns all that comes back. Connecting and sending need no server turn,
  // the kernel takes both; then the loop runs until the server closes.
  std::string ask(const std::string& bytes) {
    asio::ip::tcp::socket socket(loop_);
    socket.connect(
        {asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(server_.port())});
    asio::write(socket, asio::buffer(bytes));
    std::string reply;
    bool is_over = false;
    asio::async_read(socket, asio::dynamic_buffer(reply),
                     [&](boost::system::error_code, std::size_t) { is_over = true; });
    const auto limit = std::chrono::steady_clock::now() + kLimit;
    while (!is_over && std::chrono::steady_clock::now() < limit) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(is_over) << "the server kept the connection";
    socket.close();
    loop_.restart();
    loop_.poll();
    return reply;
  }
  std::string get(const std::string& target, const std::string& method = "GET",
                  const std::string& host = "localhost") {
    return ask(method + " " + target + " HTTP/1.1\r\nHost: " + host +
               "\r\nConnection: close\r\n\r\n");
  }

  asio::io_context loop_;
  prometheus::Registry registry_;
  int refreshed_ = 0;
  bool is_ready_ = false;
  MetricsServer server_;
};

TEST_F(MetricsServerTest, ServesMetricsWithTheRightType) {
  const std::string reply = get("/metrics");
  EXPECT_THAT(reply, AllOf(StartsWith("HTTP/1.1 200"),
                           HasSubstr("text/plain; version=0.0.4; charset=utf-8"),
                           HasSubstr("lrun_test_value 7")));
  EXPECT_EQ(refreshed_, 1);
}

TEST_F(MetricsServerTest, HeadHasNoBody) {
  EXPECT_THAT(get("/metrics", "HEAD"),
              AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("lrun_test_value"))));
}

TEST_F(MetricsServerTest, ProbesSayWhy) {
  EXPECT_THAT(get("/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("well")));
  EXPECT_THAT(get("/readyz"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("because")));
  is_ready_ = true;
  EXPECT_THAT(get("/readyz"), StartsWith("HTTP/1.1 200"));
}

// B144, M10: nothing but GET and HEAD of the known paths, for the known names.
TEST_F(MetricsServerTest, RefusesEverythingElse) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    EXPECT_THAT(get("/metrics", method), StartsWith("HTTP/1.1 405")) << method;
  }
  EXPECT_THAT(get("/admin"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get("/metrics", "GET", "evil.example.org"), StartsWith("HTTP/1.1 421"));
  EXPECT_EQ(refreshed_, 0);
}

// B142: garbage closes its own connection and nothing else.
TEST_F(MetricsServerTest, SurvivesGarbage) {
  constexpr char kHello[] = "\x16\x03\x01\x02\x00garbage\0\0\r\n\r\n";
  ask(std::string(kHello, sizeof kHello - 1));
  ask("GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(MetricsServerTest, ATakenPortIsNamed) {
  MetricsServer::Options options;
  options.port = server_.port();
  EXPECT_THAT(
      [&] {
        MetricsServer second(
            loop_, options, registry_, [] {}, [] { return Health{}; }, [] { return Health{}; });
      },
      ::testing::ThrowsMessage<std::runtime_error>(
          AllOf(HasSubstr(std::to_string(options.port)), HasSubstr("--metrics-port"))));
}

}  // namespace
}  // namespace lrun::launcher
