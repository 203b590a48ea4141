#include "rendezvous/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/credentials.h"

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
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
// Borrows its certificates.
using Chain =
    std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * stack) { sk_X509_free(stack); })>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;

constexpr auto kAuthorityLife = std::chrono::hours(24 * 365 * 20);
// Nodes whose clocks are behind must accept a new certificate.
constexpr auto kClockSkew = std::chrono::hours(24);
constexpr int kX509Version3 = 2;

// OpenSSL fails here only without memory or randomness.
void require(bool done) {
  if (!done) {
    throw CredentialsError(std::string("keys cannot be made: ") +
                           ::ERR_reason_error_string(::ERR_get_error()));
  }
}

Bio memory(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* bio) {
  char* start = nullptr;
  const long length = ::BIO_get_mem_data(bio, &start);
  return std::string(start, static_cast<std::size_t>(length));
}

std::string pem(X509* certificate) {
  const Bio bio(::BIO_new(::BIO_s_mem()));
  require(::PEM_write_bio_X509(bio.get(), certificate) == 1);
  return text_of(bio.get());
}

std::string pem(EVP_PKEY* key) {
  const Bio bio(::BIO_new(::BIO_s_mem()));
  require(::PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_of(bio.get());
}

// No pass phrase is ever asked for on the terminal.
int no_pass_phrase(char*, int, int, void*) { return 0; }

// All of a bundle, at least one.
std::vector<X509Certificate> read_certificates(const std::string& text, const std::string& path) {
  const Bio bio = memory(text);
  std::vector<X509Certificate> bundle;
  while (X509* const next = ::PEM_read_bio_X509(bio.get(), nullptr, no_pass_phrase, nullptr)) {
    bundle.emplace_back(next);
  }
  ::ERR_clear_error();
  if (bundle.empty()) throw CredentialsError(path + " holds no certificate in PEM form");
  return bundle;
}

X509Certificate read_certificate(const std::string& text, const std::string& path) {
  return std::move(read_certificates(text, path).front());
}

Key read_key(const std::string& text, const std::string& path) {
  Key key(::PEM_read_bio_PrivateKey(memory(text).get(), nullptr, no_pass_phrase, nullptr));
  ::ERR_clear_error();
  if (!key) {
    throw CredentialsError(path + " holds no private key in PEM form, or one with a pass phrase");
  }
  return key;
}

void add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX parties;
  X509V3_set_ctx(&parties, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(::X509V3_EXT_conf_nid(nullptr, &parties, kind, value));
  require(extension != nullptr && ::X509_add_ext(certificate, extension.get(), -1) == 1);
}

void set_random_serial(X509* certificate) {
  constexpr std::size_t kSerialBytes = 16;
  unsigned char bytes[kSerialBytes];
  require(::RAND_bytes(bytes, sizeof bytes) == 1);
  bytes[0] &= 0x7F;  // positive
  BIGNUM* const number = ::BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool is_set = ::BN_to_ASN1_INTEGER(number, ::X509_get_serialNumber(certificate)) != nullptr;
  ::BN_free(number);
  require(is_set);
}

// What CA and leaf have in common: all but names of the issuer, extensions and signature.
X509Certificate unsigned_certificate(EVP_PKEY* key, const char* name, std::chrono::seconds life) {
  X509Certificate certificate(::X509_new());
  X509* const x509 = certificate.get();
  require(x509 != nullptr && ::X509_set_version(x509, kX509Version3) == 1);
  set_random_serial(x509);
  const std::chrono::seconds skew = kClockSkew;
  ::X509_gmtime_adj(::X509_getm_notBefore(x509), -skew.count());
  ::X509_gmtime_adj(::X509_getm_notAfter(x509), life.count());
  require(::X509_set_pubkey(x509, key) == 1);
  require(::X509_NAME_add_entry_by_txt(::X509_get_subject_name(x509), "CN", MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(name), -1, -1,
                                       0) == 1);
  return certificate;
}

X509Certificate signed_leaf(const Certificate& authority, EVP_PKEY* key,
                            std::chrono::seconds life) {
  const X509Certificate issuer = read_certificate(authority.certificate_pem, "ca.crt");
  const Key issuer_key = read_key(authority.key_pem, "ca.key");
  X509Certificate leaf = unsigned_certificate(key, "lrun", life);
  require(::X509_set_issuer_name(leaf.get(), ::X509_get_subject_name(issuer.get())) == 1);
  add_extension(leaf.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(leaf.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(leaf.get(), issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(leaf.get(), issuer.get(), NID_subject_alt_name, "DNS:lrun");
  require(::X509_sign(leaf.get(), issuer_key.get(), ::EVP_sha256()) > 0);
  return leaf;
}

// Tells two CAs apart in messages.
std::string random_word() {
  unsigned char bytes[4];
  require(::RAND_bytes(bytes, sizeof bytes) == 1);
  std::string word;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    word += kDigits[byte >> 4];
    word += kDigits[byte & 0xF];
  }
  return word;
}

Key new_key() {
  Key key(::EVP_EC_gen("P-256"));
  require(key != nullptr);
  return key;
}

std::chrono::system_clock::time_point to_time(const ASN1_TIME* time) {
  std::tm parts{};
  require(::ASN1_TIME_to_tm(time, &parts) == 1);
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

}  // namespace

Certificate new_authority() {
  const Key key = new_key();
  const std::string name = "lrun CA " + random_word();
  const X509Certificate ca = unsigned_certificate(key.get(), name.c_str(), kAuthorityLife);
  require(::X509_set_issuer_name(ca.get(), ::X509_get_subject_name(ca.get())) == 1);
  add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  require(::X509_sign(ca.get(), key.get(), ::EVP_sha256()) > 0);
  return {.certificate_pem = pem(ca.get()), .key_pem = pem(key.get())};
}

Certificate new_leaf(const Certificate& authority, std::chrono::seconds life) {
  const Key key = new_key();
  return {.certificate_pem = pem(signed_leaf(authority, key.get(), life).get()),
          .key_pem = pem(key.get())};
}

std::string renewed_leaf(const Certificate& authority, const std::string& key_pem,
                         std::chrono::seconds life) {
  const Key key = read_key(key_pem, "tls.key");
  return pem(signed_leaf(authority, key.get(), life).get());
}

std::chrono::system_clock::time_point not_after(const std::string& certificate_pem,
                                                const std::string& path) {
  return to_time(::X509_get0_notAfter(read_certificate(certificate_pem, path).get()));
}

void check_pair(const std::string& certificate_pem, const std::string& key_pem,
                const std::string& folder) {
  const X509Certificate certificate = read_certificate(certificate_pem, folder + "/tls.crt");
  const Key key = read_key(key_pem, folder + "/tls.key");
  if (::X509_check_private_key(certificate.get(), key.get()) == 1) return;
  ::ERR_clear_error();
  throw CredentialsError(folder +
                         "/tls.key is not the key of tls.crt beside it: copy both from "
                         "the same place");
}

void check_issued_by(const std::string& certificate_pem, const std::string& ca_pem,
                     const std::string& folder) {
  const auto chain = read_certificates(certificate_pem, folder + "/tls.crt");
  const Chain intermediates(sk_X509_new_null());
  const Store store(::X509_STORE_new());
  const StoreContext check(::X509_STORE_CTX_new());
  require(intermediates && store && check);
  for (const X509Certificate& each : chain) {
    require(sk_X509_push(intermediates.get(), each.get()) > 0);
  }
  for (const X509Certificate& ca : read_certificates(ca_pem, folder + "/ca.crt")) {
    require(::X509_STORE_add_cert(store.get(), ca.get()) == 1);
  }
  require(::X509_STORE_CTX_init(check.get(), store.get(), chain.front().get(),
                                intermediates.get()) == 1);
  if (::X509_verify_cert(check.get()) == 1) return;
  const int error = ::X509_STORE_CTX_get_error(check.get());
  ::ERR_clear_error();
  throw CredentialsError(folder + "/tls.crt is not valid for ca.crt beside it (" +
                         ::X509_verify_cert_error_string(error) +
                         "): make new keys, or check this machine's clock");
}

}  // namespace lrun::rendezvous
