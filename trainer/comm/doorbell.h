// How threads of this and other processes of the node wake a sleeping communication thread.
//
// A flag in shared memory says whether the owner sleeps, so that ringing costs a system call only
// when somebody must be woken. The owner arms, looks once more for work, sleeps on the descriptor,
// disarms. Whoever made work visible rings afterwards. Any thread may ring; one thread owns.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "trainer/comm/shared_memory.h"

namespace lrun::comm {

class Doorbell {
 public:
  static Doorbell create();
  // A peer's doorbell from the two descriptors it sent.
  static Doorbell open(Fd memory, Fd event);

  void ring();

  void arm();
  void disarm();
  // Whenever the descriptor is readable, else it stays so: a ring may be written only after its
  // owner has woken for another reason, and is then found by the next sleep.
  void take_ring();
  // Readable once somebody has rung after arm().
  int descriptor() const { return event_.get(); }
  int memory_descriptor() const { return memory_.descriptor(); }

 private:
  Doorbell(SharedMemory memory, Fd event) : memory_(std::move(memory)), event_(std::move(event)) {}
  std::atomic<std::uint32_t>& is_asleep() const;

  SharedMemory memory_;
  Fd event_;
};

}  // namespace lrun::comm
