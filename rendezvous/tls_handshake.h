// A client's TLS handshake in memory, to learn what the peer thinks of us and we of it.
//
// Owns OpenSSL's state. Refuses to know sockets: bytes in, bytes out. Called by rendezvous/probe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/credentials.h"

namespace lrun::rendezvous {

class TlsHandshake {
 public:
  // Without credentials every certificate of the peer is foreign.
  explicit TlsHandshake(const std::optional<Credentials>& ours);
  ~TlsHandshake();
  TlsHandshake(const TlsHandshake&) = delete;
  TlsHandshake& operator=(const TlsHandshake&) = delete;

  // Goes on as far as the bytes given so far allow.
  void advance();
  void take_incoming(std::string_view bytes);
  std::string take_outgoing();

  bool is_done() const;                // on our side; with TLS 1.3 the peer may still refuse
  bool has_heard_application() const;  // the peer has accepted us and spoken
  bool is_peer_foreign() const;        // its certificate is not of our CA, or not valid now
  bool is_refused_by_peer() const;     // it sent an alert
  bool has_failed() const;
  std::string words() const;  // OpenSSL's for the failure

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::rendezvous
