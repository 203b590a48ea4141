// What ranks must agree on before anyone loads a checkpoint.
//
// Owns the comparisons and their sentences; part of loader.cc. Refuses to read tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/comm/comm.h"

namespace lrun::checkpoint {

// One line for each entry of the folder that is no checkpoint, up to a limit.
void warn_of_ignored(const Catalog& catalog, const std::function<void(const std::string&)>& warn);

// Collective. Steps whose checkpoint is complete and the same on every rank, ascending. Throws
// CheckpointError naming who misses what when some rank has checkpoints and there is no common one.
std::vector<std::int64_t> steps_on_all_ranks(const Catalog& catalog, comm::Comm& comm,
                                             const std::filesystem::path& folder,
                                             const std::function<void(const std::string&)>& warn);

// Throws CheckpointError naming the tensors and buffers that differ.
void expect_same_model(const LoadTarget& target, const Loaded& loaded);

// Collective. The first not empty sentence by global rank, with the rank in front unless it is 0.
std::string first_failure(comm::Comm& comm, const std::string& mine);

}  // namespace lrun::checkpoint
