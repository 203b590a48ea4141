// The file format of MNIST and Fashion-MNIST ("IDX"), plain or gzip.
//
// Owns parsing and the sentences for broken files; refuses to know what is trained on them. No
// LibTorch. Format: big-endian u32 magic (0x0801 labels, 0x0803 images), u32 per dimension, bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lrun::data {

struct LabelledImages {
  std::int64_t count = 0;
  int rows = 0;
  int columns = 0;
  std::vector<std::uint8_t> pixels;  // count × rows × columns
  std::vector<std::uint8_t> labels;  // count, each below `classes`
};

// Reads PREFIX-images-idx3-ubyte[.gz] and PREFIX-labels-idx1-ubyte[.gz] of `folder`, where PREFIX
// is "train" or "t10k". Throws DatasetError: a file is missing, truncated, damaged, of another
// kind, too large, the counts differ, or a label is not below `classes`.
LabelledImages read_labelled_images(const std::filesystem::path& folder, const std::string& prefix,
                                    int classes);

// 128-bit checksum in hexadecimal of everything above.
std::string fingerprint(const LabelledImages& images);

}  // namespace lrun::data
