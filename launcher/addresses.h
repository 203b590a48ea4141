// Which machine an address means: this one, loopback, or another.
//
// Owns the comparison with this machine's interfaces. Called by the launcher at start only; names
// are looked up, nothing is sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/endpoint.h"

namespace lrun::launcher {

inline constexpr int kDefaultRendezvousPort = 29400;

// The comma separated list of --rdzv-endpoint. An empty host is localhost, a missing port
// kDefaultRendezvousPort. Throws std::invalid_argument with one line.
std::vector<rendezvous::Endpoint> parse_endpoints(std::string_view text);

// True when one of the host's addresses is one of this machine's interfaces, or loopback. Names are
// resolved; a name that resolves to nothing is compared with this machine's host name.
bool is_this_machine(const std::string& host);

// This machine's first address that others may reach, preferring that of the default route; empty
// when it has loopback only.
std::string reachable_address();

// The host name, as gethostname() gives it; "localhost" when it has none.
std::string host_name();

}  // namespace lrun::launcher
