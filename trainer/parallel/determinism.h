// The arithmetic environment under which the same sum has the same bits, and its identity.
//
// What must be equal for two runs to agree in every bit, as measured: threads per worker, CPU
// kind, MKL's code path, library version. Called by main of a training program before any
// tensor is made, and by trainer/checkpoint for the manifest.
#pragma once

#include <map>
#include <string>

namespace lrun::parallel {

// Fixes MKL's code path (MKL_CBWR, unless the user has set it: read by MKL at its first call, so
// this comes first), the threads of one operation, and LibTorch's deterministic algorithms. The
// thread count holds for the calling thread and those it starts. `threads` at least 1.
void pin_arithmetic(int threads = 1);

// Everything that the bits of a run depend on beside program, data and seed; ordered by name. A
// difference between a checkpoint and this process is worth a warning that names it.
std::map<std::string, std::string> arithmetic_identity();

}  // namespace lrun::parallel
