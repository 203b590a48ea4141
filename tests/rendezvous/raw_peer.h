// A peer that speaks whatever it is told over a plain socket, for tests of what strangers send.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace lrun::rendezvous {

class RawPeer {
 public:
  explicit RawPeer(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void say(const std::string& bytes) {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // What the other side says until it closes, or until nothing has come for `quiet_ms`.
  std::string listen(int quiet_ms) {
    std::string heard;
    is_closed_ = false;
    pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&wait, 1, quiet_ms) > 0) {
      std::array<char, 4096> part;
      const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), 0);
      is_closed_ = got <= 0;
      if (is_closed_) break;
      heard.append(part.data(), static_cast<std::size_t>(got));
    }
    return heard;
  }

  bool is_closed() const { return is_closed_; }

 private:
  Fd socket_;
  bool is_closed_ = false;
};

}  // namespace lrun::rendezvous
