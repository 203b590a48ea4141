#include "trainer/parallel/model_parameters.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <stdexcept>

namespace lrun::parallel {
namespace {

// Why the parameter cannot be trained here; empty when it can.
std::string objection(const at::Tensor& parameter) {
  if (!parameter.defined()) return "undefined";
  if (parameter.layout() != at::kStrided) return "not dense";
  if (!parameter.device().is_cpu()) return "on device " + parameter.device().str();
  if (parameter.scalar_type() != at::kFloat) {
    return std::string("of dtype ") + c10::toString(parameter.scalar_type());
  }
  if (!parameter.is_leaf()) return "not a leaf of the autograd graph";
  if (!parameter.requires_grad()) return "without requires_grad";
  return "";
}

}  // namespace

std::string shape_text(at::IntArrayRef shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  return text + "]";
}

std::vector<std::string> describe_parameters(const NamedParameters& parameters) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : parameters) {
    lines.push_back("parameter '" + name + "' " +
                    (tensor.defined() ? shape_text(tensor.sizes()) + " of dtype " +
                                            c10::toString(tensor.scalar_type())
                                      : "undefined"));
  }
  return lines;
}

void require_trainable(const NamedParameters& parameters) {
  if (parameters.empty()) {
    throw std::invalid_argument("the model has no parameters: there is nothing to train");
  }
  for (const auto& [name, tensor] : parameters) {
    const std::string why = objection(tensor);
    if (why.empty()) continue;
    throw std::invalid_argument("parameter '" + name + "' is " + why +
                                ": pass fp32 leaf tensors on the CPU that require a gradient");
  }
}

FlatLayout layout_of(const NamedParameters& parameters) {
  std::vector<NamedShape> shapes;
  for (const auto& [name, tensor] : parameters) shapes.push_back({name, tensor.sizes().vec()});
  return make_layout(shapes);
}

at::Tensor move_into_flat(const NamedParameters& parameters, const FlatLayout& layout) {
  const at::NoGradGuard no_grad;
  at::Tensor flat = at::zeros({layout.elements}, at::kFloat);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Slot& slot = layout.slots[i];
    at::Tensor parameter = parameters[i].second;  // a handle: set_data changes the model's tensor
    at::Tensor view = flat.narrow(0, slot.offset, slot.elements).view(slot.shape);
    view.copy_(parameter);
    parameter.set_data(view);
  }
  return flat;
}

}  // namespace lrun::parallel
