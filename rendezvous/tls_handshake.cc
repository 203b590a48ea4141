#include "rendezvous/tls_handshake.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <array>

namespace lrun::rendezvous {
namespace {

template <auto Free>
struct Deleter {
  template <class Object>
  void operator()(Object* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Ssl = std::unique_ptr<SSL, Deleter<SSL_free>>;
using SslSettings = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using X509Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

// What gRPC offers: a server that knows no HTTP/2 shows itself here.
constexpr std::array<unsigned char, 3> kAlpn = {2, 'h', '2'};

Bio memory(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Errors were judged when the folder was loaded; here a bad file only makes the peer foreign.
void use(SSL_CTX* settings, const Credentials& ours) {
  const Bio authorities = memory(ours.ca_pem);
  while (X509* const next = ::PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr)) {
    const X509Certificate authority(next);
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(settings), authority.get());
  }
  const X509Certificate certificate(
      ::PEM_read_bio_X509(memory(ours.certificate_pem).get(), nullptr, nullptr, nullptr));
  const Key key(::PEM_read_bio_PrivateKey(memory(ours.key_pem).get(), nullptr, nullptr, nullptr));
  if (certificate) ::SSL_CTX_use_certificate(settings, certificate.get());
  if (key) ::SSL_CTX_use_PrivateKey(settings, key.get());
  ::ERR_clear_error();
}

}  // namespace

struct TlsHandshake::Impl {
  SslSettings settings{::SSL_CTX_new(::TLS_client_method())};
  Ssl ssl;
  BIO* incoming = nullptr;  // owned by ssl
  BIO* outgoing = nullptr;
  bool has_heard_application = false;
  bool has_failed = false;
  bool is_refused_by_peer = false;
  std::string peer_issuer;
  std::string words;

  // OpenSSL keeps no certificate that it has refused, so its issuer is noted while it is looked at.
  static int look_at_certificate(int is_good, X509_STORE_CTX* check) {
    const void* const ssl =
        ::X509_STORE_CTX_get_ex_data(check, ::SSL_get_ex_data_X509_STORE_CTX_idx());
    auto* const self = static_cast<Impl*>(SSL_get_app_data(static_cast<const SSL*>(ssl)));
    self->peer_issuer = common_name(::X509_get_issuer_name(::X509_STORE_CTX_get0_cert(check)));
    return is_good;
  }

  // As it stands in the certificate, that is: unproven, and cleaned for printing.
  static std::string common_name(const X509_NAME* name) {
    std::array<char, 64> text{};
    const int length = ::X509_NAME_get_text_by_NID(name, NID_commonName, text.data(), text.size());
    std::string clean;
    for (int at = 0; at < length; ++at) {
      const char letter = text[static_cast<std::size_t>(at)];
      clean += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return clean;
  }

  void note_failure() {
    has_failed = true;
    const unsigned long error = ::ERR_get_error();
    // OpenSSL numbers the alerts of a peer from 1000 on.
    is_refused_by_peer = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) >= 1000;
    const char* const reason = ::ERR_reason_error_string(error);
    const long verified = ::SSL_get_verify_result(ssl.get());
    if (verified == X509_V_OK) {
      words = reason != nullptr ? reason : "unknown";
    } else {
      words =
          "it was issued by '" + peer_issuer + "': " + ::X509_verify_cert_error_string(verified);
    }
    ::ERR_clear_error();
  }

  // False when it needs more bytes, or has failed.
  bool went_on(int result) {
    if (result > 0) return true;
    const int error = ::SSL_get_error(ssl.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) note_failure();
    return false;
  }
};

TlsHandshake::TlsHandshake(const std::optional<Credentials>& ours)
    : impl_(std::make_unique<Impl>()) {
  SSL_CTX* const settings = impl_->settings.get();
  if (ours) use(settings, *ours);
  ::SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, &Impl::look_at_certificate);
  ::SSL_CTX_set_alpn_protos(settings, kAlpn.data(), kAlpn.size());
  impl_->ssl.reset(::SSL_new(settings));
  SSL_set_app_data(impl_->ssl.get(), impl_.get());
  impl_->incoming = ::BIO_new(::BIO_s_mem());
  impl_->outgoing = ::BIO_new(::BIO_s_mem());
  ::SSL_set_bio(impl_->ssl.get(), impl_->incoming, impl_->outgoing);
  ::SSL_set_connect_state(impl_->ssl.get());
}

TlsHandshake::~TlsHandshake() = default;

void TlsHandshake::advance() {
  ::ERR_clear_error();
  if (impl_->has_failed || !impl_->went_on(::SSL_do_handshake(impl_->ssl.get()))) return;
  char byte = 0;
  if (impl_->went_on(::SSL_read(impl_->ssl.get(), &byte, 1))) impl_->has_heard_application = true;
}

void TlsHandshake::take_incoming(std::string_view bytes) {
  ::BIO_write(impl_->incoming, bytes.data(), static_cast<int>(bytes.size()));
}

std::string TlsHandshake::take_outgoing() {
  char* start = nullptr;
  const long length = BIO_get_mem_data(impl_->outgoing, &start);
  std::string bytes(start, static_cast<std::size_t>(length));
  BIO_reset(impl_->outgoing);
  return bytes;
}

bool TlsHandshake::is_done() const { return SSL_is_init_finished(impl_->ssl.get()) == 1; }
bool TlsHandshake::has_heard_application() const { return impl_->has_heard_application; }
bool TlsHandshake::is_peer_foreign() const {
  return impl_->has_failed && ::SSL_get_verify_result(impl_->ssl.get()) != X509_V_OK;
}
bool TlsHandshake::is_refused_by_peer() const { return impl_->is_refused_by_peer; }
bool TlsHandshake::has_failed() const { return impl_->has_failed; }
std::string TlsHandshake::words() const { return impl_->words; }

}  // namespace lrun::rendezvous
