#include "trainer/comm/shared_link.h"

#include <cstring>
#include <utility>

#include "trainer/comm/schedule.h"

namespace lrun::comm {

static_assert(kFrameBytesMax <= Ring::kDataBytes / 2, "any frame fits into an empty ring");

SharedLink::SharedLink(SharedMemory incoming, SharedMemory outgoing, Doorbell peer)
    : incoming_memory_(std::move(incoming)),
      outgoing_memory_(std::move(outgoing)),
      peer_(std::move(peer)),
      incoming_(incoming_memory_.begin()),
      outgoing_(outgoing_memory_.begin()) {}

bool SharedLink::send(std::span<const Bytes> pieces) {
  std::size_t bytes = 0;
  for (const Bytes& piece : pieces) bytes += piece.size();
  std::byte* place = outgoing_.reserve(bytes);
  is_blocked_ = place == nullptr;
  if (is_blocked_) return false;
  for (const Bytes& piece : pieces) {
    if (!piece.empty()) std::memcpy(place, piece.data(), piece.size());
    place += piece.size();
  }
  outgoing_.publish(bytes);
  has_moved_ = true;
  return true;
}

const std::byte* SharedLink::front(std::size_t bytes) {
  front_bytes_ = bytes;
  return incoming_.front(bytes);
}

void SharedLink::pop() {
  incoming_.pop(front_bytes_);
  has_moved_ = true;
}

bool SharedLink::receive(std::span<std::byte> destination) {
  const std::byte* frame = front(destination.size());
  if (frame == nullptr) return false;
  if (!destination.empty()) std::memcpy(destination.data(), frame, destination.size());
  pop();
  return true;
}

void SharedLink::ring() {
  if (std::exchange(has_moved_, false)) peer_.ring();
}

}  // namespace lrun::comm
