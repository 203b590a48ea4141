// Writes small data sets in MNIST's format, for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lrun::data {

// A folder of its own under the system's temporary one; removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

// Big-endian magic, dimensions, bytes.
std::string idx_bytes(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions,
                      const std::string& bytes);

// PREFIX-images… and PREFIX-labels…: `count` images of `side` × `side` whose label decides where
// they are bright, so that a small model can learn them.
void write_images(const std::filesystem::path& folder, const std::string& prefix, int count,
                  int side);

}  // namespace lrun::data
