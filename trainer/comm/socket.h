// Listening and dialling: TCP between nodes, abstract Unix sockets (no file) within one.
//
// All descriptors are non-blocking and closed on exec. Functions throw std::system_error or
// std::runtime_error with a sentence that names the address.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace lrun::comm {

struct TcpListener {
  Fd socket;
  int port = 0;
};

// A numeric `host` of this machine is bound itself; for a name, or an address that this machine
// does not have (it sits behind a translation), all interfaces are.
TcpListener listen_tcp(const std::string& host);

struct UnixListener {
  Fd socket;
  std::string name;  // printable; in the abstract namespace, chosen by the kernel
};
UnixListener listen_unix();

// The next connection that waits, or none.
Fd accept_one(const Fd& listener);

// Starts a connection; it is established (or refused) when the descriptor becomes writable.
// `attempt` picks one of several addresses of a name. Not open when the peer refuses at once.
Fd dial_tcp(const std::string& host, int port, int attempt);
Fd dial_unix(const std::string& name);

// Sends `bytes`, all or an error, with descriptors beside them (Unix sockets only). False when the
// peer is gone.
bool send_message(const Fd& socket, const void* message, std::size_t bytes,
                  const std::vector<int>& descriptors);

}  // namespace lrun::comm
