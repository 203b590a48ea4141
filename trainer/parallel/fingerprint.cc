#include "trainer/parallel/fingerprint.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace lrun::parallel {
namespace {

void require_success(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL could not compute SHA-256");
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require_success(EVP_DigestInit_ex(state_->digest.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  require_success(EVP_DigestUpdate(state_->digest.get(), bytes.data(), bytes.size()));
}

void Sha256::add(const std::string& text) { add(std::as_bytes(std::span(text))); }

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require_success(EVP_DigestFinal_ex(state_->digest.get(), digest.data(), &size));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace lrun::parallel
