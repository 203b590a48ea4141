// How this process keeps the memory that tensors come and go in.
//
// Called once by main of a training program, before its first tensor.
#pragma once

namespace lrun::parallel {

// Lets glibc keep freed memory for the next tensor instead of returning it to the kernel and
// faulting it in again, page by page, in every step (a tenth of the CPU time of a step of 8 linear
// layers of 1,024). The process then stays as large as it once was. Leaves alone what the user has
// set by MALLOC_TRIM_THRESHOLD_ or MALLOC_MMAP_THRESHOLD_.
void keep_freed_memory();

}  // namespace lrun::parallel
