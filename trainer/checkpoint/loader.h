// Loads the newest checkpoint that every rank can read, for any world size.
//
// Owns the agreement between ranks, verification of checksums and the mapping from the shards of N
// ranks to those of M (interval intersection on the flat vector). Refuses to know models. Called by
// trainer/loop before training; compute thread, all ranks together.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/comm.h"

namespace lrun::checkpoint {

// What one rank wants filled.
struct LoadTarget {
  std::vector<TensorRecord> tensors;  // of this program's model
  comm::Range owned;                  // elements of the flat vector
  struct Piece {
    std::string kind;
    std::span<float> values;  // of `owned`
  };
  std::vector<Piece> pieces;
  std::vector<std::string> buffers;  // of the module
};

struct LoadedBuffer {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct Loaded {
  std::filesystem::path folder;
  Manifest manifest;
  std::map<std::string, LoadedBuffer> buffers;
};

// Collective. Nothing: the folder has no complete checkpoint on any rank. `warn` receives one line
// for each thing passed over (rank 0 hears of all ranks' findings); damaged checkpoints are passed
// over for older ones. Throws CheckpointError, the same on every rank: ranks see different folders,
// every checkpoint is damaged, or the newest belongs to another model (names and shapes that differ
// are in the sentence). After an exception the target is unusable.
std::optional<Loaded> load_newest(const std::filesystem::path& folder, const LoadTarget& target,
                                  comm::Comm& comm,
                                  const std::function<void(const std::string&)>& warn);

}  // namespace lrun::checkpoint
