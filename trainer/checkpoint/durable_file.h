// Files that survive a power cut, and checksums of what was written.
//
// Owns one descriptor, the running checksum and the sentences for a full or unwritable disk.
// Refuses to know formats. Thread: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "base/fd.h"

namespace lrun::checkpoint {

// A checkpoint that cannot be written or read: one sentence that names the file.
class CheckpointError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// XXH3-128 (Collet, xxHash 0.8), fed piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  void add(std::span<const std::byte> bytes);
  // 32 hexadecimal digits, most significant first.
  std::string hexadecimal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A new file, truncated if it exists. All members throw CheckpointError.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);
  void write(std::span<const std::byte> bytes);
  // fsync and close. A file that is dropped without it may be incomplete.
  void finish();

  std::int64_t bytes() const { return bytes_; }
  std::string checksum() const { return checksum_.hexadecimal(); }

 private:
  std::filesystem::path path_;
  Fd descriptor_;
  Checksum checksum_;
  std::int64_t bytes_ = 0;
};

// Makes renames and new names inside `folder` durable. Throws CheckpointError.
void sync_folder(const std::filesystem::path& folder);
// Creates `folder` and its parents; exists already: fine. Throws CheckpointError.
void make_folder(const std::filesystem::path& folder);
// "cannot write FILE: REASON", with the reason of errno `code` in the user's words.
CheckpointError write_error(const std::filesystem::path& path, int code);

}  // namespace lrun::checkpoint
