#include "trainer/parallel/process_memory.h"

#include <malloc.h>

#include <cstdlib>

namespace lrun::parallel {

void keep_freed_memory() {
  constexpr int kMappedBytesMin = 32 << 20;  // the largest that glibc accepts
  constexpr int kFreeBytesMax = 1 << 30;     // what may stay unused at the top of the heap
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) {
    ::mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
  }
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) {
    ::mallopt(M_TRIM_THRESHOLD, kFreeBytesMax);
  }
}

}  // namespace lrun::parallel
