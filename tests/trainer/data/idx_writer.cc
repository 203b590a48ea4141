#include "tests/trainer/data/idx_writer.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "trainer/data/elastic_sampler.h"

namespace lrun::data {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lrun-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string idx_bytes(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions,
                      const std::string& bytes) {
  std::string text;
  const auto append = [&text](std::uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8)
      text.push_back(static_cast<char>(word >> shift & 0xffU));
  };
  append(magic);
  for (const std::uint32_t dimension : dimensions) append(dimension);
  return text + bytes;
}

void write_images(const std::filesystem::path& folder, const std::string& prefix, int count,
                  int side) {
  std::string pixels;
  std::string labels;
  for (int image = 0; image < count; ++image) {
    const int label = image % 10;
    labels.push_back(static_cast<char>(label));
    for (int pixel = 0; pixel < side * side; ++pixel) {
      const auto noise =
          mix(1, static_cast<std::uint64_t>(image), static_cast<std::uint64_t>(pixel)) % 64;
      const int bright = pixel * 10 / (side * side) == label ? 150 : 0;
      pixels.push_back(
          static_cast<char>(static_cast<unsigned char>(bright + static_cast<int>(noise))));
    }
  }
  const auto size = static_cast<std::uint32_t>(count);
  const auto edge = static_cast<std::uint32_t>(side);
  write_file(folder / (prefix + "-images-idx3-ubyte"),
             idx_bytes(0x803, {size, edge, edge}, pixels));
  write_file(folder / (prefix + "-labels-idx1-ubyte"), idx_bytes(0x801, {size}, labels));
}

}  // namespace lrun::data
