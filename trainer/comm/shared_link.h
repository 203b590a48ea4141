// The data path between two ranks of one node: a ring in shared memory in each direction.
//
// Owns the mapping of both rings and the peer's doorbell. One copy into the ring by the sender;
// sums read from it where it is.
#pragma once

#include "trainer/comm/doorbell.h"
#include "trainer/comm/link.h"
#include "trainer/comm/ring.h"
#include "trainer/comm/shared_memory.h"

namespace lrun::comm {

class SharedLink final : public Link {
 public:
  SharedLink(SharedMemory incoming, SharedMemory outgoing, Doorbell peer);

  bool send(std::span<const Bytes> pieces) override;
  const std::byte* front(std::size_t bytes) override;
  void pop() override;
  bool receive(std::span<std::byte> destination) override;
  void ring() override;
  bool is_closed() const override { return false; }
  int descriptor() const override { return -1; }
  bool is_blocked_sending() const override { return is_blocked_; }

 private:
  SharedMemory incoming_memory_;
  SharedMemory outgoing_memory_;
  Doorbell peer_;
  Ring incoming_;
  Ring outgoing_;
  std::size_t front_bytes_ = 0;
  bool is_blocked_ = false;
  bool has_moved_ = false;
};

}  // namespace lrun::comm
