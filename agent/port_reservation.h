// A port for the workers' MASTER_PORT that nobody else is given.
//
// Owns a socket that is bound, with SO_REUSEADDR, and never listens: the kernel hands the port to
// no one who asks for "any port", while a worker that binds it by number with SO_REUSEADDR (as
// PyTorch's store does, over IPv4 and IPv6) can still listen on it.
#pragma once

#include "base/fd.h"

namespace lrun::agent {

class PortReservation {
 public:
  // On every address of this machine. Throws std::system_error.
  PortReservation();
  int port() const { return port_; }

 private:
  Fd socket_;
  int port_ = 0;
};

}  // namespace lrun::agent
