// Keys for mutual TLS: the folder ca.crt, tls.crt, tls.key (the layout of a Kubernetes TLS secret).
//
// Owns making, renewing, reading and judging such a folder. Refuses to know gRPC. Called by the
// launcher at start, which hands the result to the server and the client. Any thread.
//
// Whoever holds a certificate of the job's CA is a member; host names are not compared, since
// nodes are dialled by many names. The user's own folder also holds ca.key, so that tls.crt can be
// renewed before it expires; a copied folder works without it.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace lrun::rendezvous {

// What a folder held when it was read. The text never reaches a log, a status or a command line.
struct Credentials {
  std::string folder;
  std::string ca_pem;
  std::string certificate_pem;
  std::string key_pem;
  // Of tls.crt, for the metric and for warnings.
  std::chrono::system_clock::time_point not_after;
};

// One line: the file, what is wrong with it, and the fix.
struct CredentialsError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// ${XDG_CONFIG_HOME}/lrun/tls, else ${HOME}/.config/lrun/tls, else the home of the password file.
// Empty variables count as unset, and so does a relative XDG_CONFIG_HOME, as its specification
// says.
std::string user_tls_folder();

// Reads `--tls DIR`. Refuses (CredentialsError): missing or unreadable files, a key that everybody
// may read (group-readable is accepted: Kubernetes mounts secrets so), a key of another
// certificate, a certificate of another CA, one that is expired or not valid yet.
Credentials load_credentials(const std::string& folder);

// Makes `folder` (mode 0700, files 0600, P-256) unless it exists: complete or not at all, so that
// many processes on a shared home may race and all end with the winner's. Never overwrites.
void make_credentials(const std::string& folder);

// The user's own folder: made on first use, tls.crt renewed when less than a third of its life is
// left and ca.key is there, then loaded.
Credentials load_or_make_credentials(const std::string& folder);

}  // namespace lrun::rendezvous
