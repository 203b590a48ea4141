// Which checkpoints a folder holds.
//
// Owns the names step_N, step_N.partial.GENERATION and the decision what is complete; refuses to
// know tensors. Only rank 0 removes anything. Thread: compute.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"

namespace lrun::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";

struct CompleteCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

struct IgnoredEntry {
  std::filesystem::path path;
  std::string reason;
};

struct Catalog {
  std::vector<CompleteCheckpoint> complete;  // by step, ascending
  std::vector<IgnoredEntry> ignored;         // by name
};

// step_00001200
std::string folder_name(std::int64_t step);
// step_00001200.partial.3.7
std::string partial_name(std::int64_t step, Generation generation);
// The number of step_N, with any count of digits; nothing for every other name.
std::optional<std::int64_t> step_of(const std::string& name);

// A folder that does not exist is empty. Complete: the manifest is valid, names the step of the
// folder, and every file has its length. Checksums are verified while loading.
Catalog read_catalog(const std::filesystem::path& folder);

// Keeps the `keep_last` complete checkpoints with the largest steps; removes older ones, and what
// unfinished saves left behind. `own`: the generation that may still be writing.
void prune(const std::filesystem::path& folder, int keep_last, Generation own);

}  // namespace lrun::checkpoint
