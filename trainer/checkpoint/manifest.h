// What a checkpoint says about itself: manifest.json, written last.
//
// Pure data and its JSON text; refuses to know files. A folder is a checkpoint when its manifest
// is valid and every file it lists is there with its length:
//
//   step_00001200/  shard-00000-of-00004.safetensors …  manifest.json
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/ids.h"

namespace lrun::checkpoint {

inline constexpr int kManifestVersion = 1;

// One shard: what its rank owned of the flat vector, elements [begin, end).
struct FileRecord {
  std::string name;
  std::int64_t bytes = 0;
  std::string checksum;  // XXH3-128 of the whole file
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

// One logical tensor of the flat vector. Its extents in the files follow: file f holds elements
// [max(begin_f, offset), min(end_f, offset + elements)).
struct TensorRecord {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  friend bool operator==(const TensorRecord&, const TensorRecord&) = default;
};

// Everything small that training needs to go on exactly (trainer.md §3.12).
struct TrainingState {
  std::int64_t epoch = 0;
  std::int64_t consumed = 0;  // samples of this epoch
  std::int64_t samples = 0;   // samples in all
  std::int64_t optimizer_steps = 0;
  std::uint64_t seed = 0;
  int leaves = 1;
  int leaf_size = 1;
  std::string dataset;  // fingerprint
  std::string run_id;
  std::map<std::string, std::string> optimization;  // schedule and optimizer: kinds and parameters
  std::map<std::string, std::string> environment;   // CPU capability, versions, threads, MKL_CBWR
  std::map<std::string, std::string> loggers;       // position of each log, see loop/logger.h
  std::map<std::string, std::string> config;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

struct Manifest {
  Generation generation;  // that wrote it
  std::int64_t step = 0;
  int world_size = 1;
  std::string layout;              // checksum of names and shapes
  std::vector<std::string> kinds;  // "param", "exp_avg", "exp_avg_sq"
  std::vector<FileRecord> files;   // by global rank
  std::vector<TensorRecord> tensors;
  std::vector<std::string> buffers;  // of the module; whole, in the first file
  TrainingState state;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// With a checksum over everything else, so that no bit can flip unseen.
std::string to_json(const Manifest& manifest);
// Throws CheckpointError saying what is wrong, without the file's name.
Manifest manifest_from_json(const std::string& text);

}  // namespace lrun::checkpoint
