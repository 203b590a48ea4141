// The data path between two ranks on different nodes: one TCP connection.
//
// Owns the socket and one frame of memory. Sends from and receives into the caller's memory where
// it can.
#pragma once

#include <memory>

#include "base/fd.h"
#include "trainer/comm/link.h"

namespace lrun::comm {

class TcpLink final : public Link {
 public:
  // A connected stream socket.
  explicit TcpLink(Fd socket);

  bool send(std::span<const Bytes> pieces) override;
  const std::byte* front(std::size_t bytes) override;
  void pop() override { received_ = 0; }
  bool receive(std::span<std::byte> destination) override;
  void ring() override {}
  bool is_closed() const override { return is_closed_; }
  int descriptor() const override { return socket_.get(); }
  bool is_blocked_sending() const override { return is_blocked_; }

 private:
  bool fill(std::byte* destination, std::size_t bytes);

  Fd socket_;
  std::unique_ptr<std::byte[]> frame_;
  std::size_t sent_ = 0;      // bytes of the outgoing frame
  std::size_t received_ = 0;  // bytes of the incoming frame
  bool is_blocked_ = false;
  bool is_closed_ = false;
};

}  // namespace lrun::comm
