// The second connection to a peer: says how the peer fares, never carries payload, so that an abort
// overtakes any amount of payload and the end of the peer's process is seen at once.
//
// Owns one connected stream socket. Used by the communication thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "trainer/comm/failure.h"

namespace lrun::comm {

class Control {
 public:
  explicit Control(Fd socket);

  // Best effort: a peer that does not read is a peer whose connection is watched anyway.
  void send(const Failure& failure);
  void send_goodbye();

  // What has arrived since the last call. Nothing malformed is trusted: it ends the connection.
  std::vector<Failure> receive();

  bool said_goodbye() const { return said_goodbye_; }
  // Closed, broken, or gone with a goodbye.
  bool is_gone() const { return said_goodbye_ || is_closed_; }
  // −1 once gone: there is nothing left to wait for.
  int descriptor() const { return is_gone() ? -1 : socket_.get(); }

 private:
  void send_record(std::uint32_t kind, const Failure& failure);
  std::optional<Failure> take_record();

  Fd socket_;
  std::vector<char> pending_;
  bool said_goodbye_ = false;
  bool is_closed_ = false;
};

}  // namespace lrun::comm
