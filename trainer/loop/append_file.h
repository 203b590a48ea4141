// A file that only grows, except when a resumed run cuts it back.
//
// Owns the descriptor. Failures to write throw std::runtime_error: a run that cannot log says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/fd.h"

namespace lrun::loop {

class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path) : path_(std::move(path)) {}
  // Opens (creates) the file and cuts it to `bytes`. False: it is shorter than that, and stays as
  // it is.
  bool open_at(std::int64_t bytes);
  void append(std::span<const std::byte> bytes);
  void append(const std::string& text) { append(std::as_bytes(std::span(text))); }
  // fsync; returns the length.
  std::int64_t sync();
  std::int64_t length() const { return length_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_;
  Fd descriptor_;
  std::int64_t length_ = 0;
};

}  // namespace lrun::loop
