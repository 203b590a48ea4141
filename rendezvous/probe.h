// What is at the other end, when a call did not get through: one connection of our own, looked at
// until it tells.
//
// Owns sockets and a TLS handshake in memory. Refuses to know gRPC, whose own words are too few: a
// foreign certificate, plain text against TLS and a program of another kind are all "closed" to it.
// Called by rendezvous/client after a failed call, on the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "proto/ids.h"
#include "rendezvous/credentials.h"
#include "rendezvous/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace lrun::rendezvous {

enum class Finding {
  NoSocket,        // the Unix socket does not exist
  Refused,         // nobody listens there
  NotPermitted,    // the Unix socket belongs to another user
  NoRoute,         // no way from this machine
  Silent,          // no answer to the connection attempt
  Mute,            // accepts, then says nothing
  Closes,          // accepts, then closes without a word
  OtherProtocol,   // accepts, and speaks neither TLS nor HTTP/2
  PlainGrpc,       // speaks HTTP/2 in plain text
  TrustedTls,      // speaks TLS; both certificates are accepted
  ForeignTls,      // speaks TLS with a certificate that ours do not vouch for
  RefusesOurKeys,  // speaks TLS and turned ours down
  Accepts,         // the connection stands (when only that was asked)
};

struct ProbeTarget {
  Endpoint endpoint;  // TCP: `host` is a numeric address
  // How much to find out: a handshake as well, or only whether the host takes connections.
  bool looks_at_protocol = true;
  std::optional<Credentials> credentials;  // ours, for the handshake
};

struct ProbeResult {
  Finding finding = Finding::Silent;
  std::string detail;  // the system's or OpenSSL's words; may be empty
};

// Calls `on_result` once, from the loop, after kProbeLimit at the latest; never from inside.
void probe(boost::asio::io_context& loop, ProbeTarget target,
           std::function<void(ProbeResult)> on_result);

inline constexpr Duration kProbeLimit = std::chrono::seconds(2);

}  // namespace lrun::rendezvous
