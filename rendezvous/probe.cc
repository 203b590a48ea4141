#include "rendezvous/probe.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "rendezvous/tls_handshake.h"

namespace lrun::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;

constexpr std::uint8_t kTlsAlert = 0x15;
constexpr std::uint8_t kTlsHandshake = 0x16;
constexpr std::uint8_t kTlsVersionMajor = 0x03;
constexpr std::size_t kFrameHeaderBytes = 9;
constexpr std::size_t kFrameTypeAt = 3;
constexpr std::uint8_t kSettingsFrame = 0x04;

bool is_tls(std::string_view heard) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(heard[at]); };
  return heard.size() >= 2 && (byte(0) == kTlsHandshake || byte(0) == kTlsAlert) &&
         byte(1) == kTlsVersionMajor;
}

// Every HTTP/2 server opens with this frame.
bool is_http2(std::string_view heard) {
  return heard.size() >= kFrameHeaderBytes && heard[0] == 0 &&
         static_cast<std::uint8_t>(heard[kFrameTypeAt]) == kSettingsFrame;
}

// One probe; holds itself while anything is pending.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(asio::io_context& loop, ProbeTarget target, std::function<void(ProbeResult)> on_result)
      : target_(std::move(target)),
        on_result_(std::move(on_result)),
        socket_(loop),
        timer_(loop, kProbeLimit) {}

  void start() {
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->end(self->finding_if_time_is_up());
    });
    error_code bad_address;
    const Protocol::endpoint address = address_of_target(bad_address);
    if (bad_address) return end_soon({Finding::NoRoute, bad_address.message()});
    socket_.async_connect(address, [self = shared_from_this()](const error_code& error) {
      self->on_connected(error);
    });
  }

 private:
  Protocol::endpoint address_of_target(error_code& bad_address) const {
    const Endpoint& endpoint = target_.endpoint;
    if (!endpoint.unix_path.empty()) {
      return asio::local::stream_protocol::endpoint(endpoint.unix_path);
    }
    const auto address = asio::ip::make_address(endpoint.host, bad_address);
    return asio::ip::tcp::endpoint(address, static_cast<std::uint16_t>(endpoint.port));
  }

  void on_connected(const error_code& error) {
    if (is_over_) return;
    if (error) return end(finding_of(error));
    is_connected_ = true;
    if (!target_.looks_at_protocol) return end({Finding::Accepts, {}});
    handshake_.emplace(target_.credentials);
    handshake_->advance();
    send_and_listen();
  }

  static ProbeResult finding_of(const error_code& error) {
    if (error == asio::error::connection_refused) return {Finding::Refused, error.message()};
    if (error == boost::system::errc::no_such_file_or_directory) return {Finding::NoSocket, {}};
    if (error == boost::system::errc::permission_denied) return {Finding::NotPermitted, {}};
    if (error == asio::error::timed_out) return {Finding::Silent, error.message()};
    return {Finding::NoRoute, error.message()};
  }

  ProbeResult finding_if_time_is_up() const {
    if (!is_connected_) return {Finding::Silent, {}};
    if (handshake_ && handshake_->is_done()) return {Finding::TrustedTls, {}};
    return {Finding::Mute, {}};
  }

  void send_and_listen() {
    sending_ = handshake_->take_outgoing();
    asio::async_write(socket_, asio::buffer(sending_),
                      [self = shared_from_this()](const error_code&, std::size_t) {
                        // A failed write shows as a failed read, with what was said before.
                        if (!self->is_over_) self->listen();
                      });
  }

  void listen() {
    socket_.async_read_some(asio::buffer(part_),
                            [self = shared_from_this()](const error_code& error, std::size_t got) {
                              self->on_heard(error, got);
                            });
  }

  void on_heard(const error_code& error, std::size_t got) {
    if (is_over_) return;
    const std::string_view news(part_.data(), got);
    if (opening_.size() < kFrameHeaderBytes) opening_ += news.substr(0, kFrameHeaderBytes);
    if (is_http2(opening_)) return end({Finding::PlainGrpc, {}});
    if (error) return end(finding_at_end());
    if (!is_tls(opening_)) {
      // A few more bytes may tell; an unknown opening ends here.
      return opening_.size() < kFrameHeaderBytes ? listen() : end({Finding::OtherProtocol, {}});
    }
    handshake_->take_incoming(news);
    handshake_->advance();
    judge_handshake();
  }

  void judge_handshake() {
    if (handshake_->is_peer_foreign()) return end({Finding::ForeignTls, handshake_->words()});
    if (handshake_->is_refused_by_peer())
      return end({Finding::RefusesOurKeys, handshake_->words()});
    // Only what comes after the handshake tells whether the peer takes our certificate.
    if (handshake_->has_heard_application()) return end({Finding::TrustedTls, {}});
    if (handshake_->has_failed()) return end({Finding::OtherProtocol, handshake_->words()});
    send_and_listen();
  }

  ProbeResult finding_at_end() const {
    if (opening_.empty()) return {Finding::Closes, {}};
    if (!is_tls(opening_)) return {Finding::OtherProtocol, {}};
    return {Finding::RefusesOurKeys, "the connection was closed during the handshake"};
  }

  void end_soon(ProbeResult result) {
    asio::post(timer_.get_executor(),
               [self = shared_from_this(), result = std::move(result)] { self->end(result); });
  }

  void end(ProbeResult result) {
    if (is_over_) return;
    is_over_ = true;
    timer_.cancel();
    error_code ignored;  // it is thrown away
    if (handshake_) {
      // Why we go: the other side's log then says it as well.
      socket_.non_blocking(true, ignored);
      socket_.write_some(asio::buffer(handshake_->take_outgoing()), ignored);
    }
    socket_.close(ignored);
    on_result_(std::move(result));
  }

  const ProbeTarget target_;
  const std::function<void(ProbeResult)> on_result_;
  Protocol::socket socket_;
  asio::steady_timer timer_;
  std::optional<TlsHandshake> handshake_;
  std::string opening_;  // the first bytes heard
  std::string sending_;
  std::array<char, 4096> part_{};
  bool is_connected_ = false;
  bool is_over_ = false;
};

}  // namespace

void probe(asio::io_context& loop, ProbeTarget target, std::function<void(ProbeResult)> on_result) {
  std::make_shared<Probe>(loop, std::move(target), std::move(on_result))->start();
}

}  // namespace lrun::rendezvous
