// The parameters of a model as this library takes them in: checked, described, moved into one flat
// buffer.
//
// Called by DataParallel when it is made. Thread: the compute thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/flat_layout.h"

namespace lrun::parallel {

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

// "[64,32]"; a scalar is "[]".
std::string shape_text(at::IntArrayRef shape);

// One line for each parameter, for require_agreement().
std::vector<std::string> describe_parameters(const NamedParameters& parameters);

// Throws std::invalid_argument, naming the first parameter that is not a dense fp32 leaf on the CPU
// that requires a gradient, or when there are none.
void require_trainable(const NamedParameters& parameters);

FlatLayout layout_of(const NamedParameters& parameters);

// Copies every parameter into its slot of a new flat fp32 buffer and makes it a view of that slot.
// Padding is zero.
at::Tensor move_into_flat(const NamedParameters& parameters, const FlatLayout& layout);

}  // namespace lrun::parallel
