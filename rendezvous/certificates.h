// X.509 in the few forms that lrun needs: a CA, a leaf of it, and whether a leaf is good.
//
// Owns OpenSSL's objects and its words for errors. Refuses to know files, except by name in
// messages. Called by rendezvous/credentials. Any thread.
#pragma once

#include <chrono>
#include <string>

namespace lrun::rendezvous {

struct Certificate {
  std::string certificate_pem;
  std::string key_pem;
};

// A new CA (P-256, valid for twenty years), for this user's nodes only.
Certificate new_authority();
// A certificate for both ends of TLS, signed by the CA, with a new P-256 key.
Certificate new_leaf(const Certificate& authority, std::chrono::seconds life);
// The same for the key that is there.
std::string renewed_leaf(const Certificate& authority, const std::string& key_pem,
                         std::chrono::seconds life);

// The end of a certificate's life. Like the checks below, throws CredentialsError with one line.
std::chrono::system_clock::time_point not_after(const std::string& certificate_pem,
                                                const std::string& path);
// tls.crt belongs to tls.key.
void check_pair(const std::string& certificate_pem, const std::string& key_pem,
                const std::string& folder);
// tls.crt was issued by ca.crt and is valid now.
void check_issued_by(const std::string& certificate_pem, const std::string& ca_pem,
                     const std::string& folder);

}  // namespace lrun::rendezvous
