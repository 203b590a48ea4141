#include "trainer/parallel/leaf_sums.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace lrun::parallel {
namespace {

// Small enough that a chain of additions stays in the first-level cache.
constexpr std::size_t kChunk = 1024;

// A gradient of zeros where there is none; one chunk of it is enough.
constexpr std::array<float, kChunk> kZeros{};

// addends[n−1] = addends[n−1] + (… + (addends[0] + gradient)) for one chunk.
void add_chain(std::span<float* const> addends, const float* gradient, std::size_t size) {
  std::array<float, kChunk> chain;
  std::copy_n(gradient, size, chain.begin());
  for (const float* left : addends) {
    for (std::size_t i = 0; i < size; ++i) chain[i] = left[i] + chain[i];
  }
  std::copy_n(chain.begin(), size, addends.back());
}

void add_to(float* left, const float* gradient, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) left[i] += gradient[i];
}

// What autograd delivered, as contiguous memory.
at::Tensor contiguous_gradient(const Slot& slot, const at::Tensor& gradient) {
  if (gradient.layout() != at::kStrided) {
    throw std::runtime_error("the gradient of parameter '" + slot.name +
                             "' is sparse: build its module with dense gradients");
  }
  if (gradient.scalar_type() != at::kFloat || gradient.numel() != slot.elements) {
    throw std::runtime_error("the gradient of parameter '" + slot.name +
                             "' no longer fits its fp32 slot of " + std::to_string(slot.elements) +
                             " elements: do not change a parameter after DataParallel took it");
  }
  return gradient.contiguous();
}

}  // namespace

LeafSums::LeafSums(std::int64_t elements, AccumulationPlan plan) : plan_(std::move(plan)) {
  for (int i = 0; i < plan_.buffers; ++i) buffers_.push_back(at::zeros({elements}, at::kFloat));
}

void LeafSums::add(std::size_t step, const Slot& slot, const at::Tensor& gradient) {
  const LeafStep& leaf = plan_.steps[step];
  const auto at_slot = [&](int buffer) {
    return buffers_[static_cast<std::size_t>(buffer)].data_ptr<float>() + slot.offset;
  };
  const at::Tensor values = gradient.defined() ? contiguous_gradient(slot, gradient) : at::Tensor();
  const float* source = values.defined() ? values.const_data_ptr<float>() : nullptr;
  float* destination = at_slot(leaf.destination);
  std::vector<float*> addends;
  for (const int buffer : leaf.addends) addends.push_back(at_slot(buffer));

  const auto elements = static_cast<std::size_t>(slot.elements);
  for (std::size_t begin = 0; begin < elements; begin += kChunk) {
    const std::size_t size = std::min(kChunk, elements - begin);
    const float* chunk = source != nullptr ? source + begin : kZeros.data();
    if (addends.empty()) {
      std::copy_n(chunk, size, destination + begin);
    } else if (addends.size() == 1) {
      add_to(destination + begin, chunk, size);
    } else {
      add_chain(addends, chunk, size);
      for (float*& addend : addends) addend += size;
    }
  }
}

at::Tensor& LeafSums::sum(std::size_t i) {
  return buffers_[static_cast<std::size_t>(plan_.sums[i])];
}

std::int64_t LeafSums::bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& buffer : buffers_) bytes += static_cast<std::int64_t>(buffer.nbytes());
  return bytes;
}

}  // namespace lrun::parallel
