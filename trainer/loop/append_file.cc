#include "trainer/loop/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace lrun::loop {

bool AppendFile::open_at(std::int64_t bytes) {
  descriptor_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor_.is_open()) fail(errno);
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) != 0) fail(errno);
  length_ = status.st_size;
  if (length_ < bytes) return false;
  if (::ftruncate(descriptor_.get(), bytes) != 0) fail(errno);
  length_ = bytes;
  return true;
}

void AppendFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    length_ += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::int64_t AppendFile::sync() {
  if (::fsync(descriptor_.get()) != 0) fail(errno);
  return length_;
}

void AppendFile::fail(int code) const {
  throw std::runtime_error("cannot write log " + path_.string() + ": " + std::strerror(code));
}

}  // namespace lrun::loop
