// Where a service listens, as users write it: "unix:/path", "host:port", "[address]:port".
//
// Owns the grammar and the words for mistakes in it. Refuses to know sockets. Called by the
// launcher's options, the server and the client. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lrun::rendezvous {

struct Endpoint {
  std::string unix_path = {};  // absolute; empty: TCP
  std::string host = {};       // a name, or an address without brackets
  int port = 0;                // 0: the listener picks one; nobody can dial it
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Throws std::invalid_argument with one line that names the value, what is accepted and the fix.
// Port 0 is accepted: whether it makes sense is the caller's question.
Endpoint parse_endpoint(std::string_view text);

// As the user would write it; parse_endpoint of it gives the same endpoint.
std::string to_string(const Endpoint& endpoint);

// Unix sockets, 127.0.0.0/8, ::1 and the name localhost: never leaves the machine, needs no keys.
bool is_loopback(const Endpoint& endpoint);

// Longest path that fits into a socket address.
inline constexpr std::size_t kUnixPathBytesMax = 107;

}  // namespace lrun::rendezvous
