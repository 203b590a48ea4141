#include "trainer/comm/ring.h"

namespace lrun::comm {
namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

// A frame that would cross the end of the data starts at its beginning instead.
std::uint64_t Ring::start_of(std::uint64_t position, std::size_t bytes) {
  const std::uint64_t offset = position % kDataBytes;
  return offset + bytes > kDataBytes ? position + kDataBytes - offset : position;
}

std::uint64_t Ring::end_of(std::uint64_t position, std::size_t bytes) {
  return start_of(position, bytes) + (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::byte* Ring::reserve(std::size_t bytes) {
  const std::uint64_t end = end_of(position_, bytes);
  if (end - read().load(std::memory_order_acquire) > kDataBytes) return nullptr;
  return at(start_of(position_, bytes));
}

void Ring::publish(std::size_t bytes) {
  position_ = end_of(position_, bytes);
  written().store(position_, std::memory_order_release);
}

const std::byte* Ring::front(std::size_t bytes) const {
  if (written().load(std::memory_order_acquire) < end_of(position_, bytes)) return nullptr;
  return at(start_of(position_, bytes));
}

void Ring::pop(std::size_t bytes) {
  position_ = end_of(position_, bytes);
  read().store(position_, std::memory_order_release);
}

}  // namespace lrun::comm
