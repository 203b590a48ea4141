// A finite set of samples that can be read in any order.
//
// Owns nothing; refuses to know leaves, ranks and epochs (elastic_sampler.h). `trainer/vision` and
// user programs implement it. Thread: const members are called from the loader's thread while the
// compute thread calls them too, so implementations keep no mutable state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace lrun::data {

// Samples stacked along dimension 0.
struct Batch {
  at::Tensor inputs;
  at::Tensor targets;
  std::int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
};

// A data set that cannot be used: one sentence that names the file and the fix.
class DatasetError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // Changes when any sample changes. A run resumes only on the data it was started with.
  virtual std::string fingerprint() const = 0;
  // `samples`: at least one index in [0, size()). A pure function of its argument.
  virtual Batch batch(std::span<const std::int64_t> samples) const = 0;
};

}  // namespace lrun::data
