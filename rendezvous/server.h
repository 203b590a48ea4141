// The service's doors: gRPC on Unix sockets and TCP, in front of a Service on the loop.
//
// Owns listeners, open calls and their cancellation. Refuses to decide anything: each call becomes
// one call of Service, each answer one Finish. gRPC's threads only copy a request and leave it in a
// mailbox; everything else happens on the loop's thread, which also owns this object. While it
// lives it keeps the loop's run() busy.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/ids.h"
#include "rendezvous/credentials.h"
#include "rendezvous/endpoint.h"

namespace boost::asio {
class io_context;
}

namespace lrun::rendezvous {

class Metrics;
class Service;

// A listener could not be opened. One line: address, reason, the option to change.
struct ListenError : std::runtime_error {
  ListenError(const std::string& line, bool taken) : std::runtime_error(line), is_taken(taken) {}
  bool is_taken;  // another process listens there: perhaps this job's service, so join it instead
};

class Server {
 public:
  struct Options {
    // Unix sockets are made with mode 0600 in folders that must exist. A socket whose service has
    // died is replaced, one that lives is a ListenError. Port 0 picks a free port.
    std::vector<Endpoint> listen;
    // For TCP beyond loopback. Without them, and without insecure_network, such an endpoint is a
    // ListenError.
    std::optional<Credentials> credentials;
    bool insecure_network = false;  // plain text everywhere
    // What all peers together can make the service hold; beyond it their calls are cut. gRPC looks
    // at a message's size only once all of it is there, so the limit of 64 KiB alone bounds
    // nothing. A thousand agents need 60 MB.
    std::size_t memory_bytes_max = 256 * 1024 * 1024;
  };
  // Throws ListenError. `metrics` may be null. The service must outlive the server.
  Server(boost::asio::io_context& loop, Service& service, Options options,
         Metrics* metrics = nullptr);
  // Answers every open call with UNAVAILABLE, closes all connections (cut after kShutdownLimit),
  // removes the Unix sockets.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As given in Options::listen, in order, with the ports that were picked.
  const std::vector<Endpoint>& endpoints() const;

  static constexpr Duration kShutdownLimit = std::chrono::seconds(1);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::rendezvous
