// A ring of frames in shared memory: one writer, one reader, in different processes.
//
// Frames are contiguous. Both ends know the size of each frame, so both compute where it lies and
// only two counters are shared. Memory: Ring::kMemoryBytes, zeroed at first.
//
//   | written | read | … | frame | frame | (gap where the next frame did not fit) |
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lrun::comm {

class Ring {
 public:
  static constexpr std::size_t kDataBytes = 1024 * 1024;
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kMemoryBytes = kHeaderBytes + kDataBytes;

  // `memory` outlives the ring and is aligned to a page.
  explicit Ring(std::byte* memory) : memory_(memory) {}

  // Writer: where the next frame of `bytes` (at most kDataBytes / 2) goes, or null for want of
  // room; visible to the reader after publish().
  std::byte* reserve(std::size_t bytes);
  void publish(std::size_t bytes);

  // Reader: the next frame of `bytes`, or null; its place is free again after pop().
  const std::byte* front(std::size_t bytes) const;
  void pop(std::size_t bytes);

 private:
  using Counter = std::atomic<std::uint64_t>;
  static_assert(Counter::is_always_lock_free, "counters are shared by processes");

  // The counters lie in cache lines of their own.
  Counter& written() const { return *reinterpret_cast<Counter*>(memory_); }
  Counter& read() const { return *reinterpret_cast<Counter*>(memory_ + 128); }
  std::byte* at(std::uint64_t position) const {
    return memory_ + kHeaderBytes + position % kDataBytes;
  }
  static std::uint64_t start_of(std::uint64_t position, std::size_t bytes);
  static std::uint64_t end_of(std::uint64_t position, std::size_t bytes);

  std::byte* memory_;
  std::uint64_t position_ = 0;  // of this end, in bytes since the beginning
};

}  // namespace lrun::comm
