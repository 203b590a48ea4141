// Where a rendezvous is served, and whether that is this machine.
//
// Owns the text form of endpoints and the comparison with this machine's addresses. Pure but for
// the look-up of names and interfaces, both at start only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

inline constexpr int kDefaultRendezvousPort = 29400;

struct Endpoint {
  std::string host;  // empty for a Unix socket
  int port = kDefaultRendezvousPort;
  std::string unix_path;
  bool is_unix() const { return !unix_path.empty(); }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The comma separated list of --rdzv-endpoint, already checked by run_options. An empty host is
// localhost, a missing port kDefaultRendezvousPort.
std::vector<Endpoint> parse_endpoints(std::string_view text);

// "host:port", "[v6]:port" or "unix:/path": what rendezvous/client takes.
std::string to_string(const Endpoint& endpoint);

// Loopback by name or number: TLS is not needed there.
bool is_loopback(const std::string& host);

// True when one of the host's addresses is one of this machine's interfaces, or loopback. Names are
// resolved; a name that resolves to nothing is compared with this machine's host name.
bool is_this_machine(const std::string& host);

// This machine's first address that others may reach, preferring that of the default route; empty
// when it has loopback only.
std::string reachable_address();

}  // namespace lrun::launcher
