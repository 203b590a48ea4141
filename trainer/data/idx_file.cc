#include "trainer/data/idx_file.h"

#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "trainer/data/dataset.h"

namespace lrun::data {
namespace {

constexpr std::uint32_t kLabelsMagic = 0x0801;
constexpr std::uint32_t kImagesMagic = 0x0803;
// A header that promises more than this is taken for damage instead of being allocated.
constexpr std::int64_t kBytesMax = std::int64_t{8} << 30;
constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;

constexpr const char* kFix =
    "; install it again (Debian: apt-get install --reinstall dataset-fashion-mnist) or set "
    "data.path";

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw DatasetError("data set file " + file.string() + " " + what + kFix);
}

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

// Reads through zlib, which passes plain files on unchanged.
class IdxReader {
 public:
  explicit IdxReader(std::filesystem::path file) : file_(std::move(file)) {
    gz_.reset(gzopen(file_.c_str(), "rb"));
    if (!gz_) fail(file_, std::string("cannot be opened (") + std::strerror(errno) + ")");
  }

  std::uint32_t big_endian_word() {
    std::array<std::uint8_t, 4> bytes{};
    read(bytes);
    return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) |
           (std::uint32_t{bytes[2]} << 8) | std::uint32_t{bytes[3]};
  }

  void read(std::span<std::uint8_t> destination) {
    while (!destination.empty()) {
      const auto wanted = std::min<std::size_t>(destination.size(), kReadBytes);
      const int got = gzread(gz_.get(), destination.data(), static_cast<unsigned>(wanted));
      if (got < 0) fail(file_, std::string("is damaged (") + error_text() + ")");
      if (got == 0) {
        fail(file_, "is truncated (" + std::to_string(destination.size()) +
                        " bytes fewer than its header says)");
      }
      destination = destination.subspan(static_cast<std::size_t>(got));
    }
  }

  // The check value of gzip is only compared when the end is read.
  void expect_end() {
    std::uint8_t extra = 0;
    const int got = gzread(gz_.get(), &extra, 1);
    if (got > 0) fail(file_, "has more bytes than its header says");
    int code = Z_OK;
    gzerror(gz_.get(), &code);
    if (got < 0 || code == Z_BUF_ERROR)
      fail(file_, std::string("is damaged (") + error_text() + ")");
  }

  const std::filesystem::path& file() const { return file_; }

 private:
  struct Close {
    void operator()(gzFile_s* gz) const { gzclose(gz); }
  };
  std::string error_text() {
    int code = Z_OK;
    return gzerror(gz_.get(), &code);
  }

  std::filesystem::path file_;
  std::unique_ptr<gzFile_s, Close> gz_;
};

std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  for (const char* suffix : {".gz", ""}) {
    const std::filesystem::path file = folder / (name + suffix);
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  fail(folder / (name + ".gz"), "is missing");
}

void expect_magic(IdxReader& reader, std::uint32_t expected, const char* kind) {
  const std::uint32_t magic = reader.big_endian_word();
  if (magic != expected) {
    fail(reader.file(), std::string("is not an IDX file of ") + kind + " (it starts with " +
                            hexadecimal(magic) + " instead of " + hexadecimal(expected) + ")");
  }
}

void read_images(const std::filesystem::path& file, LabelledImages* images) {
  IdxReader reader(file);
  expect_magic(reader, kImagesMagic, "images");
  images->count = reader.big_endian_word();
  const std::uint32_t rows = reader.big_endian_word();
  const std::uint32_t columns = reader.big_endian_word();
  constexpr std::uint32_t kSideMax = 4096;
  if (images->count == 0 || rows == 0 || columns == 0 || rows > kSideMax || columns > kSideMax ||
      images->count > kBytesMax / rows / columns) {
    fail(file, "has an impossible header (" + std::to_string(images->count) + " images of " +
                   std::to_string(rows) + " × " + std::to_string(columns) + ")");
  }
  images->rows = static_cast<int>(rows);
  images->columns = static_cast<int>(columns);
  images->pixels.resize(static_cast<std::size_t>(images->count) * rows * columns);
  reader.read(images->pixels);
  reader.expect_end();
}

void read_labels(const std::filesystem::path& file, int classes, LabelledImages* images) {
  IdxReader reader(file);
  expect_magic(reader, kLabelsMagic, "labels");
  const std::int64_t count = reader.big_endian_word();
  if (count != images->count) {
    fail(file, "has " + std::to_string(count) + " labels for " + std::to_string(images->count) +
                   " images");
  }
  images->labels.resize(static_cast<std::size_t>(count));
  reader.read(images->labels);
  reader.expect_end();
  const auto worst = std::max_element(images->labels.begin(), images->labels.end());
  if (*worst >= classes) {
    fail(file, "has the label " + std::to_string(*worst) + "; the largest allowed is " +
                   std::to_string(classes - 1));
  }
}

}  // namespace

LabelledImages read_labelled_images(const std::filesystem::path& folder, const std::string& prefix,
                                    int classes) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw DatasetError("data set folder " + folder.string() +
                       " is missing; install it (Debian: apt-get install dataset-fashion-mnist) or "
                       "set data.path");
  }
  LabelledImages images;
  read_images(find(folder, prefix + "-images-idx3-ubyte"), &images);
  read_labels(find(folder, prefix + "-labels-idx1-ubyte"), classes, &images);
  return images;
}

std::string fingerprint(const LabelledImages& images) {
  const XXH128_hash_t pixels = XXH3_128bits(images.pixels.data(), images.pixels.size());
  const XXH128_hash_t labels = XXH3_128bits_withSeed(images.labels.data(), images.labels.size(),
                                                     pixels.low64 ^ pixels.high64);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(labels.high64),
                static_cast<unsigned long long>(labels.low64));
  return text.data();
}

}  // namespace lrun::data
