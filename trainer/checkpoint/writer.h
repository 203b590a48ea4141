// Saves checkpoints: each rank its shard, rank 0 the manifest last.
//
// Owns the protocol (trainer.md §3.11) and the number of checkpoints kept; refuses to know models
// and when to save. Called by trainer/loop at step borders. `write_shard` may run on any thread
// (what an asynchronous writer would do with a copy of the shard); the rest: compute thread, all
// ranks together.
//
//   write_shard: step_N.partial.G/shard-r  fsync      every rank
//   commit:      gather lengths and checksums         every rank; any failure fails all
//                manifest.json  fsync, folder fsync   rank 0
//                rename to step_N, parent fsync       rank 0
//                outcome                              to every rank
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/comm/comm.h"
#include "trainer/parallel/flat_layout.h"

namespace lrun::checkpoint {

// The logical tensors of a layout, as manifests record them, and the checksum of names and shapes.
std::vector<TensorRecord> tensor_records(const parallel::FlatLayout& layout);
std::string layout_checksum(const std::vector<TensorRecord>& tensors);

// What one rank writes.
struct Shard {
  std::vector<TensorRecord> tensors;  // of the whole layout
  comm::Range owned;                  // elements of the flat vector
  struct Piece {
    std::string kind;
    std::span<const float> values;  // of `owned`
  };
  std::vector<Piece> pieces;
  std::vector<TensorBytes> buffers;  // of the module; rank 0's are saved
};

struct SaveOutcome {
  std::filesystem::path folder;  // of the new checkpoint
  std::int64_t bytes = 0;        // of all shards
  std::string error;             // not empty: nothing was saved, the same sentence on every rank
  bool is_saved() const { return error.empty(); }
};

// The result of writing one shard, before anybody else knows.
struct ShardReport {
  FileRecord file;
  std::string error;
};
ShardReport write_shard(const std::filesystem::path& partial, const std::string& file_name,
                        const Shard& shard);

class Writer {
 public:
  struct Options {
    std::filesystem::path folder;  // the same files on every rank
    int keep_last = 3;
    Generation generation;
  };
  // `comm` must outlive the writer.
  Writer(Options options, comm::Comm& comm) : options_(std::move(options)), comm_(comm) {}

  // Collective. A failed save leaves earlier checkpoints untouched; throws only Comm's errors.
  SaveOutcome save(const Shard& shard, std::int64_t step, const TrainingState& state);

 private:
  SaveOutcome commit(const Shard& shard, const ShardReport& mine, std::int64_t step,
                     const TrainingState& state);
  std::string publish(const Manifest& manifest) const;

  Options options_;
  comm::Comm& comm_;
};

}  // namespace lrun::checkpoint
