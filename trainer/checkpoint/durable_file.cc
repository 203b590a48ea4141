#include "trainer/checkpoint/durable_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace lrun::checkpoint {

struct Checksum::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {}
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

std::string Checksum::hexadecimal() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

DurableFile::DurableFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!descriptor_.is_open()) throw write_error(path_, errno);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  checksum_.add(bytes);
  bytes_ += static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw write_error(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void DurableFile::finish() {
  if (::fsync(descriptor_.get()) != 0) throw write_error(path_, errno);
  // Network file systems report a full disk or quota at close.
  if (::close(descriptor_.release()) != 0) throw write_error(path_, errno);
}

void sync_folder(const std::filesystem::path& folder) {
  const Fd descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open() || ::fsync(descriptor.get()) != 0) throw write_error(folder, errno);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw write_error(folder, error.value());
}

CheckpointError write_error(const std::filesystem::path& path, int code) {
  std::string reason = std::strerror(code);
  if (code == ENOSPC) reason = "the disk is full";
  if (code == EDQUOT) reason = "the disk quota is used up";
  if (code == EROFS) reason = "the file system is read-only";
  return CheckpointError("cannot write " + path.string() + ": " + reason);
}

}  // namespace lrun::checkpoint
