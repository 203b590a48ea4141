// A piece of memory shared with another process of this node, without a name: it disappears with
// the last process that has it, however that process ends.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace lrun::comm {

class SharedMemory {
 public:
  // Zeroed memory behind a sealed memfd: nobody can shrink it under a reader.
  // Throws std::system_error.
  static SharedMemory create(std::size_t bytes);
  // Memory that a peer created. Throws std::runtime_error when it is not sealed or of other size.
  static SharedMemory map(Fd descriptor, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* begin() const { return begin_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  SharedMemory(Fd descriptor, std::size_t bytes);

  Fd descriptor_;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lrun::comm
