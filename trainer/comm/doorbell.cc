#include "trainer/comm/doorbell.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>

namespace lrun::comm {
namespace {

constexpr std::size_t kMemoryBytes = 4096;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the flag is shared by processes");

}  // namespace

Doorbell Doorbell::create() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.is_open()) {
    throw std::system_error(errno, std::generic_category(), "cannot create an event descriptor");
  }
  return {SharedMemory::create(kMemoryBytes), std::move(event)};
}

Doorbell Doorbell::open(Fd memory, Fd event) {
  return {SharedMemory::map(std::move(memory), kMemoryBytes), std::move(event)};
}

// Zeroed memory is a flag that says "awake".
std::atomic<std::uint32_t>& Doorbell::is_asleep() const {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.begin());
}

// Both sides exchange the flag. Either ring() comes second and finds the owner asleep, or arm()
// comes second, takes over what ring() released, and the owner's last look finds the work.
void Doorbell::ring() {
  if (is_asleep().exchange(0, std::memory_order_acq_rel) == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

void Doorbell::arm() { is_asleep().exchange(1, std::memory_order_acq_rel); }

void Doorbell::disarm() { is_asleep().exchange(0, std::memory_order_acq_rel); }

void Doorbell::take_ring() {
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto got = ::read(event_.get(), &rings, sizeof rings);
}

}  // namespace lrun::comm
