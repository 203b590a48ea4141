// Do all ranks train the same model with the same options, from the same values?
//
// Collective calls, at start only; every rank throws the same error. Called by DataParallel.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "trainer/comm/comm.h"

namespace lrun::parallel {

// `lines` describe what must be equal, one property a line. Throws std::runtime_error with the
// first line that differs between ranks, and both versions of it.
void require_agreement(const std::vector<std::string>& lines, comm::Comm& comm);

// Rank 0's `values` (contiguous fp32) on every rank. Throws std::runtime_error when a rank
// received something else.
void broadcast_values(at::Tensor& values, comm::Comm& comm);

}  // namespace lrun::parallel
