// Between a module with its DataParallel and the checkpoint's flat pieces.
//
// Owns the translation of tensors and buffers; refuses to know files. Compute thread.
#pragma once

#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/parallel/data_parallel.h"

namespace torch::nn {
class Module;
}

namespace lrun::loop {

// What this rank saves. Points into the live tensors: valid until the next step.
checkpoint::Shard shard_of(parallel::DataParallel& parallel, torch::nn::Module& module);
// What this rank wants loaded, into the live tensors. Afterwards call restore_buffers and
// DataParallel::after_load.
checkpoint::LoadTarget target_of(parallel::DataParallel& parallel, torch::nn::Module& module);
// Throws checkpoint::CheckpointError naming a buffer whose dtype or shape differs.
void restore_buffers(const checkpoint::Loaded& loaded, torch::nn::Module& module);

// Empty, or a sentence that names the first layer whose result would depend on the world size.
std::string unsupported_layer(torch::nn::Module& module);

}  // namespace lrun::loop
