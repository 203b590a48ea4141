// What strangers may do to the service's port: nothing (field case B142), and what an environment
// full of proxies may do to a client: nothing (B135).
#include <gmock/gmock.h>
#include <malloc.h>

#include <cstdio>
#include <random>

#include "tests/rendezvous/io_fixture.h"
#include "tests/rendezvous/raw_peer.h"

namespace lrun::rendezvous {
namespace {

using testing::HasSubstr;

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string kEmptySettings = bytes_of({0, 0, 0, 4, 0, 0, 0, 0, 0});

std::string frame(int type, int flags, int stream, const std::string& payload) {
  const int size = static_cast<int>(payload.size());
  return bytes_of(
             {size >> 16 & 0xFF, size >> 8 & 0xFF, size & 0xFF, type, flags, 0, 0, 0, stream}) +
         payload;
}

// HPACK without compression: each header a literal that is never indexed.
std::string headers_of_join() {
  std::string block;
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string, std::string>>{
           {":method", "POST"},
           {":scheme", "http"},
           {":path", "/lrun.rendezvous.v1.Rendezvous/Join"},
           {":authority", "localhost"},
           {"te", "trailers"},
           {"content-type", "application/grpc"}}) {
    block += bytes_of({0x10, static_cast<int>(name.size())}) + name;
    block += bytes_of({static_cast<int>(value.size())}) + value;
  }
  return block;
}

long resident_kib() {
  long pages = 0;
  long resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT_EQ(std::fscanf(file, "%ld %ld", &pages, &resident), 2);
  std::fclose(file);
  return resident * 4;
}

class RendezvousIoHostile : public RendezvousIo {
 protected:
  void SetUp() override {
    memory_bytes_max = 16 * 1024 * 1024;  // less than by default, to reach it sooner
    serve(1, 1);
    open_doors({"127.0.0.1:0"});
    // A job is running while strangers knock.
    agent_ = client_of(server->endpoints()[0]);
    agent_->join(join_of("a"), [this](Answer<JoinReply> answer) { joined_ = std::move(answer); });
    run_until([&] { return joined_.has_value(); });
  }

  void TearDown() override {
    expect_served(options_for(server->endpoints()[0]));
    EXPECT_EQ(service->status().phase, Phase::Active) << "the job is unaffected";
    EXPECT_EQ(service->status().nodes.size(), 1u);
  }

  int port() const { return server->endpoints()[0].port; }

  std::unique_ptr<Client> agent_;
  std::optional<Answer<JoinReply>> joined_;
};

TEST_F(RendezvousIoHostile, RandomBytesAreClosed) {
  std::mt19937 random(7);  // NOLINT: the same bytes each time
  for (int peer_number = 0; peer_number < 20; ++peer_number) {
    std::string bytes(2000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    RawPeer peer(port());
    peer.say(bytes);
    peer.listen(5000);
    EXPECT_TRUE(peer.is_closed());
  }
}

TEST_F(RendezvousIoHostile, AnHttpRequestIsClosed) {
  RawPeer peer(port());
  peer.say("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  peer.listen(5000);
  EXPECT_TRUE(peer.is_closed());
}

TEST_F(RendezvousIoHostile, ATlsHelloOnThePlainPortIsClosed) {
  RawPeer peer(port());
  peer.say(bytes_of({0x16, 3, 1, 0, 0xC0, 1, 0, 0, 0xBC, 3, 3}) + std::string(185, 'r'));
  peer.listen(5000);
  EXPECT_TRUE(peer.is_closed());
}

TEST_F(RendezvousIoHostile, AFrameOfSixteenMegabytesIsClosed) {
  RawPeer peer(port());
  peer.say(kPreface + kEmptySettings + bytes_of({0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1}));
  peer.listen(5000);
  EXPECT_TRUE(peer.is_closed());
}

// Sends the payload of stream 1 as fast as the service's flow control allows, which it widens for
// as long as it believes in the message.
class GigabyteSender {
 public:
  explicit GigabyteSender(int port) : peer_(port) {
    peer_.say(kPreface + kEmptySettings + frame(1, 4, 1, headers_of_join()) +
              frame(0, 0, 1, bytes_of({0, 0x40, 0, 0, 0})));  // not compressed, 1 GiB
  }

  // The bytes sent until the service cut the call, or `bytes_max`.
  long send_until_cut(long bytes_max) {
    const std::string part = frame(0, 0, 1, std::string(kPartBytes, 'x'));
    while (!is_cut_ && sent_ < bytes_max) {
      if (std::min(connection_window_, stream_window_) < kPartBytes) {
        heard_ += peer_.listen(kShortMs);
        take_frames();
        is_cut_ = is_cut_ || peer_.is_closed();
        continue;
      }
      peer_.say(part);
      connection_window_ -= kPartBytes;
      stream_window_ -= kPartBytes;
      sent_ += kPartBytes;
    }
    return sent_;
  }
  bool is_cut() const { return is_cut_; }

 private:
  static constexpr long kPartBytes = 16 * 1000;
  static constexpr int kShortMs = 2;

  long number(std::size_t at, std::size_t bytes) const {
    long value = 0;
    for (std::size_t each = at; each < at + bytes; ++each) {
      value = value << 8 | static_cast<unsigned char>(heard_[each]);
    }
    return value;
  }

  void take_frames() {
    while (heard_.size() >= 9 && heard_.size() >= 9 + static_cast<std::size_t>(number(0, 3))) {
      constexpr long kReset = 3, kPing = 6, kGoAway = 7, kWindowUpdate = 8;
      const long type = number(3, 1);
      const long flags = number(4, 1);
      long& window = number(5, 4) == 0 ? connection_window_ : stream_window_;
      if (type == kWindowUpdate) window += number(9, 4);
      if (type == kPing && flags == 0) peer_.say(frame(6, 1, 0, heard_.substr(9, 8)));
      is_cut_ = is_cut_ || type == kReset || type == kGoAway;
      heard_.erase(0, 9 + static_cast<std::size_t>(number(0, 3)));
    }
  }

  RawPeer peer_;
  std::string heard_;
  long connection_window_ = 65'535;
  long stream_window_ = 65'535;
  long sent_ = 0;
  bool is_cut_ = false;
};

TEST_F(RendezvousIoHostile, AMessageThatDeclaresAGigabyteIsCutAtTheMemoryLimit) {
  const long before = resident_kib();
  GigabyteSender sender(port());
  const long sent = sender.send_until_cut(8 * static_cast<long>(memory_bytes_max));
  EXPECT_TRUE(sender.is_cut()) << sent << " bytes were taken";
  EXPECT_LT(resident_kib() - before, static_cast<long>(3 * memory_bytes_max / 1024));
}

TEST_F(RendezvousIoHostile, HalfOpenConnectionsCostLittle) {
  const long before = resident_kib();
  std::vector<RawPeer> peers;
  for (int each = 0; each < 300; ++each) peers.emplace_back(port());
  expect_served(options_for(server->endpoints()[0]));
  EXPECT_LT(resident_kib() - before, 60 * 1024);
}

TEST_F(RendezvousIoHostile, GrammarThatIsNoRequestIsRefusedWithASentence) {
  JoinRequest request = join_of("b");
  request.facts.node.value.clear();
  std::optional<Answer<JoinReply>> answer;
  agent_->join(request, [&](Answer<JoinReply> given) { answer = std::move(given); });
  run_until([&] { return answer.has_value(); });
  const JoinReply reply = reply_of<JoinReply>(answer);
  ASSERT_TRUE(std::holds_alternative<Refusal>(reply));
  EXPECT_EQ(std::get<Refusal>(reply).reason, RefuseReason::BadRequest);
  EXPECT_THAT(std::get<Refusal>(reply).sentence, HasSubstr("facts.node"));
}

// A request beyond 64 KiB never reaches the machine, and the client says so.
TEST_F(RendezvousIoHostile, ARequestBeyondItsLimitIsRefused) {
  JoinRequest request = join_of("b");
  request.facts.labels["rack"] = std::string(100'000, 'x');
  std::optional<Answer<JoinReply>> answer;
  agent_->join(request, [&](Answer<JoinReply> given) { answer = std::move(given); });
  run_until([&] { return answer.has_value(); });
  ASSERT_TRUE(std::holds_alternative<Unreachable>(*answer));
  EXPECT_THAT(std::get<Unreachable>(*answer).sentence, HasSubstr("RESOURCE_EXHAUSTED"));
}

class ProxyVariables {
 public:
  ProxyVariables() {
    for (const char* name : kNames) ::setenv(name, "http://127.0.0.1:1", 1);
  }
  ~ProxyVariables() {
    for (const char* name : kNames) ::unsetenv(name);
  }

 private:
  static constexpr std::array kNames = {"http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY",
                                        "HTTPS_PROXY"};
};

TEST_F(RendezvousIoHostile, ProxiesInTheEnvironmentHaveNoEffect) {
  const ProxyVariables set;
  expect_served(options_for(server->endpoints()[0]));
  expect_served(options_for({.host = "localhost", .port = port()}));
}

}  // namespace
}  // namespace lrun::rendezvous
