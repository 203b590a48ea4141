// Addresses to listen on, before and beside gRPC: who holds a Unix socket's path, and why an
// address could not be had.
//
// Owns the lock beside a Unix socket, so that one process serves it and a dead one's is replaced.
// Called by rendezvous/server at start-up.
#pragma once

#include <string>

#include "base/fd.h"
#include "rendezvous/endpoint.h"
#include "rendezvous/server.h"

namespace lrun::rendezvous {

// The right to serve a path: a lock on `path.lock`, which the kernel releases with the process. The
// lock file stays, since removing it would let two processes hold two locks of one name.
class UnixPathClaim {
 public:
  // Throws ListenError: another process serves there (is_taken), or the folder cannot be written.
  explicit UnixPathClaim(std::string path);
  // Removes the socket.
  ~UnixPathClaim();
  UnixPathClaim(UnixPathClaim&&) noexcept = default;
  UnixPathClaim& operator=(UnixPathClaim&&) = delete;

 private:
  std::string path_;
  Fd lock_;
};

// Why listening on `endpoint` failed: found by trying again, since gRPC does not tell.
ListenError explain_failed_listen(const Endpoint& endpoint);

}  // namespace lrun::rendezvous
