// Calls back as soon as backward has completed the gradient of a parameter.
//
// Owns the hooks in the autograd graph, and removes them when it dies. Refuses to know what is done
// with a gradient. Thread: the one that calls backward(); an exception of the callback leaves
// backward() with its own type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace lrun::parallel {

class GradientHooks {
 public:
  // `ready(i)`: parameters[i].grad() holds the gradient of this backward, also of a parameter that
  // the graph uses more than once. Never called for parameters that the loss does not depend on.
  GradientHooks(const std::vector<at::Tensor>& parameters, std::function<void(std::size_t)> ready);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  struct Hook {
    std::shared_ptr<torch::autograd::Node> accumulator;  // dropped, the hook would never fire
    std::uintptr_t key = 0;
  };
  std::vector<Hook> hooks_;
};

}  // namespace lrun::parallel
