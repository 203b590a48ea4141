// The words for every way of not reaching a service, and what follows from each.
//
// Pure: a finding in, an Unreachable out. Called by rendezvous/client.
#pragma once

#include <string>

#include "rendezvous/endpoint.h"
#include "rendezvous/link.h"
#include "rendezvous/probe.h"

namespace lrun::rendezvous {

// What the client had tried when the probe was sent.
struct Attempt {
  Endpoint endpoint;  // as the user wrote it
  bool uses_tls = false;
  std::string tls_folder = {};  // of our keys, when uses_tls
  bool is_out_of_time = false;  // the call's deadline ended it, not the connection's end
};

Unreachable explain(const Attempt& attempt, const ProbeResult& found);

// The name could not be resolved, so there was nothing to probe.
Unreachable explain_unknown_name(const Endpoint& endpoint);

// A service answered with a status of gRPC's own.
Unreachable explain_status(const Endpoint& endpoint, std::string_view code,
                           const std::string& message, bool is_final);

}  // namespace lrun::rendezvous
