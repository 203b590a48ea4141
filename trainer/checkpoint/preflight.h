// Finds out before training starts that checkpoints can be written.
//
// Owns the trial; refuses to know when checkpoints are saved. Compute thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "proto/ids.h"

namespace lrun::checkpoint {

// Creates `folder`, writes and removes a small file, and compares the free space with
// `bytes_needed` less what the folder already holds. Empty: all is well; else one sentence with the
// fix. The trial file is named after `rank`, so that all ranks may try at once.
std::string check_folder(const std::filesystem::path& folder, std::int64_t bytes_needed,
                         GlobalRank rank);

// Bytes of `kept` checkpoints and one being written, for a flat vector of `elements` in `kinds`
// kinds of state.
std::int64_t estimate_bytes(std::int64_t elements, int kinds, int kept);

}  // namespace lrun::checkpoint
