// The safetensors file format: u64 little-endian length, a JSON header, raw tensors.
//
// Owns the format and its bounds checks; refuses to know what a tensor means, and LibTorch. Files
// are read and written alike by Python's safetensors package. Thread: any.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lrun::checkpoint {

class DurableFile;

// A tensor to write. `bytes` are its values in row-major order, little-endian.
struct TensorBytes {
  std::string name;
  std::string dtype;  // "F32", "I64", "U8", …
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Where a tensor lies in a file.
struct TensorEntry {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // byte offsets from the start of the file, [begin, end)
  std::int64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Bytes of one element of a safetensors dtype; 0: no such dtype.
std::int64_t dtype_bytes(const std::string& dtype);

// Writes a whole file, not finished (fsync is the caller's). Names must differ.
void write_safetensors(DurableFile& file, const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata);

// Reads and checks the header: every extent inside the file and as long as dtype and shape say, no
// two overlap. Throws CheckpointError naming the file and what is wrong.
SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

// Streams the file once, in pieces, through `piece(file offset, bytes)` and returns its checksum,
// so that memory stays bounded while every byte is verified. Throws CheckpointError.
std::string stream_file(
    const std::filesystem::path& path,
    const std::function<void(std::int64_t offset, std::span<const std::byte> bytes)>& piece);

}  // namespace lrun::checkpoint
