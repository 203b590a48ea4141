#include "trainer/comm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace lrun::comm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

SharedMemory::SharedMemory(Fd descriptor, std::size_t bytes)
    : descriptor_(std::move(descriptor)), bytes_(bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED) throw_errno("cannot map shared memory");
  begin_ = static_cast<std::byte*>(address);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      begin_(std::exchange(other.begin_, nullptr)),
      bytes_(other.bytes_) {}

SharedMemory::~SharedMemory() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

SharedMemory SharedMemory::create(std::size_t bytes) {
  Fd descriptor(::memfd_create("lrun-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_open()) throw_errno("cannot create shared memory");
  if (::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
    throw_errno("cannot size shared memory");
  }
  if (::fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0) throw_errno("cannot seal shared memory");
  return {std::move(descriptor), bytes};
}

SharedMemory SharedMemory::map(Fd descriptor, std::size_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (::fstat(descriptor.get(), &status) != 0 || seals < 0 || (seals & kSeals) != kSeals ||
      status.st_size != static_cast<off_t>(bytes)) {
    throw std::runtime_error("a peer offered shared memory of another size, or not sealed");
  }
  return {std::move(descriptor), bytes};
}

}  // namespace lrun::comm
