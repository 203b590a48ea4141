#include "trainer/loop/model_state.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <cstring>
#include <map>

#include "trainer/checkpoint/durable_file.h"

namespace lrun::loop {
namespace {

std::string dtype_name(at::ScalarType type) {
  static const std::map<at::ScalarType, std::string> names = {
      {at::kBool, "BOOL"}, {at::kByte, "U8"},   {at::kChar, "I8"},  {at::kShort, "I16"},
      {at::kInt, "I32"},   {at::kLong, "I64"},  {at::kHalf, "F16"}, {at::kBFloat16, "BF16"},
      {at::kFloat, "F32"}, {at::kDouble, "F64"}};
  const auto found = names.find(type);
  if (found == names.end()) {
    throw checkpoint::CheckpointError(std::string("a buffer has dtype ") + c10::toString(type) +
                                      ", which checkpoints cannot hold");
  }
  return found->second;
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "a buffer of the module is not contiguous");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

std::span<float> floats_of(const parallel::OwnedState& state, comm::Range owned) {
  TORCH_CHECK(state.values->is_contiguous() && state.values->numel() == owned.size(),
              "owned state '", state.kind, "' does not cover the owned range");
  return {state.values->data_ptr<float>(), static_cast<std::size_t>(owned.size())};
}

bool is_batch_norm(const torch::nn::Module& layer) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&layer) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&layer) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&layer) != nullptr;
}

}  // namespace

checkpoint::Shard shard_of(parallel::DataParallel& parallel, torch::nn::Module& module) {
  checkpoint::Shard shard{.tensors = checkpoint::tensor_records(parallel.layout()),
                          .owned = parallel.owned(),
                          .pieces = {},
                          .buffers = {}};
  for (const parallel::OwnedState& state : parallel.owned_state()) {
    shard.pieces.push_back({.kind = state.kind, .values = floats_of(state, shard.owned)});
  }
  for (const auto& buffer : module.named_buffers()) {
    shard.buffers.push_back({.name = buffer.key(),
                             .dtype = dtype_name(buffer->scalar_type()),
                             .shape = buffer->sizes().vec(),
                             .bytes = bytes_of(*buffer)});
  }
  return shard;
}

checkpoint::LoadTarget target_of(parallel::DataParallel& parallel, torch::nn::Module& module) {
  checkpoint::LoadTarget target{.tensors = checkpoint::tensor_records(parallel.layout()),
                                .owned = parallel.owned(),
                                .pieces = {},
                                .buffers = {}};
  for (const parallel::OwnedState& state : parallel.owned_state()) {
    target.pieces.push_back({.kind = state.kind, .values = floats_of(state, target.owned)});
  }
  for (const auto& buffer : module.named_buffers()) target.buffers.push_back(buffer.key());
  return target;
}

void restore_buffers(const checkpoint::Loaded& loaded, torch::nn::Module& module) {
  for (const auto& buffer : module.named_buffers()) {
    const checkpoint::LoadedBuffer& saved = loaded.buffers.at(buffer.key());
    if (saved.dtype != dtype_name(buffer->scalar_type()) || saved.shape != buffer->sizes().vec()) {
      throw checkpoint::CheckpointError("checkpoint " + loaded.folder.string() +
                                        " belongs to another model: buffer " + buffer.key() +
                                        " has another dtype or shape");
    }
    std::memcpy(bytes_of(*buffer).data(), saved.bytes.data(), saved.bytes.size());
  }
}

// By children, not by Module::named_modules, which asks that the root be in a shared_ptr.
std::string unsupported_layer(torch::nn::Module& module) {
  for (const auto& child : module.named_children()) {
    torch::nn::Module& layer = *child.value();
    if (is_batch_norm(layer)) {
      return "layer '" + child.key() +
             "' is a BatchNorm, whose running statistics would depend on the number of workers; "
             "use "
             "GroupNorm or LayerNorm";
    }
    const std::string below = unsupported_layer(layer);
    if (!below.empty()) return below;
  }
  return {};
}

}  // namespace lrun::loop
