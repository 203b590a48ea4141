// How a run can end badly, by what the user does next. Pure.
#pragma once

#include <stdexcept>

namespace lrun::loop {

// A mistake in options, configuration, data set or checkpoint folder: one line that names the
// value, what is accepted and the fix. Thrown on every rank before the first step. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// Training cannot go on: the gradient's norm is not finite. Nothing was changed by that step.
class NotFinite : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

}  // namespace lrun::loop
