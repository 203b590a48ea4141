// The data path to one peer: an ordered stream of frames in each direction, without blocking.
//
// Implementations: SharedLink (a ring in shared memory), TcpLink. Both ends know the size of the
// next frame, so frames have no header. Used by the communication thread only.
#pragma once

#include <cstddef>
#include <span>

namespace lrun::comm {

class Link {
 public:
  using Bytes = std::span<const std::byte>;

  virtual ~Link() = default;

  // Sends the pieces one after another as one frame of at most kFrameBytesMax bytes. False: no room
  // now; call again with the same pieces, unchanged, until it says true. After true the pieces may
  // be overwritten.
  virtual bool send(std::span<const Bytes> pieces) = 0;

  // The next incoming frame, `bytes` long, aligned for floats; null until all of it is here. Stays
  // valid until pop().
  virtual const std::byte* front(std::size_t bytes) = 0;
  virtual void pop() = 0;

  // The next incoming frame, copied to `destination`. False until all of it is there; call again
  // with the same destination, whose bytes are undefined meanwhile.
  virtual bool receive(std::span<std::byte> destination) = 0;

  // Wakes the peer if it sleeps and something has moved since the last call.
  virtual void ring() = 0;

  // The peer's end is closed and everything it sent has been read, or sending failed.
  virtual bool is_closed() const = 0;

  // What to wait for: a descriptor, or −1 when the peer rings this rank's doorbell instead.
  virtual int descriptor() const = 0;
  // send() had no room; wait until the descriptor is writable.
  virtual bool is_blocked_sending() const = 0;
};

}  // namespace lrun::comm
