#include "rendezvous/transport.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace lrun::rendezvous {
namespace {

constexpr unsigned kReadAgainSeconds = 30;
constexpr std::chrono::steady_clock::duration kWarningInterval = std::chrono::minutes(1);

// --- what gRPC says
// --------------------------------------------------------------------------------

// A way for a peer to fail the handshake: OpenSSL's words, and ours.
struct FailedHandshake {
  std::string_view sign;
  std::string_view sentence;
};
constexpr std::array kFailedHandshakes = {
    FailedHandshake{"certificate verify failed",
                    "a peer presented a certificate of another CA, or an expired one: copy the "
                    "same TLS folder to all nodes, or give all --tls DIR or --insecure-network"},
    FailedHandshake{"peer did not return a certificate",
                    "a peer presented no certificate: give it this job's keys (--tls DIR)"},
    FailedHandshake{"unknown ca",
                    "a peer holds keys of another CA than this service: copy the same TLS folder "
                    "to all nodes, or give all --tls DIR or --insecure-network"},
    FailedHandshake{"",
                    "a peer on the TLS port does not speak TLS: it may run with "
                    "--insecure-network, or be no lrun"},
};

std::atomic<bool> is_handshake_worth_a_warning{false};
std::array<std::atomic<std::chrono::steady_clock::rep>, kFailedHandshakes.size()> last_warnings{};

// Any thread. True once an interval.
bool is_time_for_warning(std::size_t kind) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto last = last_warnings[kind].load();
  if (last != 0 && now - std::chrono::steady_clock::duration(last) < kWarningInterval) return false;
  return last_warnings[kind].compare_exchange_strong(last, now.count());
}

void warn_of(std::string_view message) {
  for (std::size_t kind = 0; kind < kFailedHandshakes.size(); ++kind) {
    if (message.find(kFailedHandshakes[kind].sign) == std::string_view::npos) continue;
    if (is_time_for_warning(kind)) {
      log::warn("peer_refused", {{"why", kFailedHandshakes[kind].sentence}});
    }
    return;
  }
}

void take_log_line(gpr_log_func_args* line) {
  const std::string_view message = line->message;
  if (is_handshake_worth_a_warning && message.find("Handshake failed") == 0) warn_of(message);
  log::debug("grpc", {{"message", message}, {"file", line->file}, {"line", line->line}});
}

// --- settings that gRPC reads only from its environment
// ---------------------------------------------

// Holds a variable of this process' environment for a moment; single-threaded use only.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// --- credentials
// -----------------------------------------------------------------------------------

using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::NoOpCertificateVerifier;

void fill(grpc::experimental::TlsCredentialsOptions& options, const Credentials& credentials) {
  options.set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
      credentials.folder + "/tls.key", credentials.folder + "/tls.crt",
      credentials.folder + "/ca.crt", kReadAgainSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(std::make_shared<NoOpCertificateVerifier>());
  options.set_check_call_host(false);
}

}  // namespace

void start_grpc() {
  static bool is_started = false;
  if (is_started) return;
  is_started = true;
  gpr_set_log_function(take_log_line);
  // The system's resolver obeys nsswitch.conf, as everything else on the node does; the built-in
  // one does not. It is chosen once, when gRPC starts; afterwards the variable is as it was, since
  // workers inherit the environment.
  const ScopedVariable resolver("GRPC_DNS_RESOLVER", "native");
  grpc_init();  // never undone: gRPC's threads end with the process
}

void warn_of_failed_handshakes() { is_handshake_worth_a_warning = true; }

void warn_of_plain_text(const std::string& endpoint) {
  log::warn("insecure_network",
            {{"endpoint", endpoint},
             {"why", "whoever reaches this address can read and join the job: it has no TLS"}});
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Credentials* credentials) {
  if (credentials == nullptr) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(nullptr);
  fill(options, *credentials);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Credentials* credentials) {
  if (credentials == nullptr) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  fill(options, *credentials);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace lrun::rendezvous
