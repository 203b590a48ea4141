#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fd.h"
#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory");

using Json = nlohmann::json;

// The limit of the reference implementation.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
// Data starts at a multiple of this, so that mapped tensors are aligned.
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw CheckpointError("file " + path.string() + " " + what);
}

Fd open_for_reading(const std::filesystem::path& path) {
  Fd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) fail(path, std::string("cannot be opened: ") + std::strerror(errno));
  return descriptor;
}

// Fills `destination` or reports the end of the file by a smaller count.
std::size_t read_up_to(const Fd& descriptor, std::span<std::byte> destination,
                       const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < destination.size()) {
    const ssize_t got =
        ::read(descriptor.get(), destination.data() + done, destination.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// Elements of a shape; −1 when negative or too many to count.
std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t side : shape) {
    if (side < 0 || __builtin_mul_overflow(elements, side, &elements)) return -1;
  }
  return elements;
}

TensorEntry parse_entry(const std::filesystem::path& path, const std::string& name,
                        const Json& json, std::int64_t data_begin, std::int64_t file_bytes) {
  TensorEntry entry{.dtype = json.at("dtype").get<std::string>(),
                    .shape = json.at("shape").get<std::vector<std::int64_t>>()};
  const auto offsets = json.at("data_offsets").get<std::array<std::uint64_t, 2>>();
  const auto data_bytes = static_cast<std::uint64_t>(file_bytes - data_begin);
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    fail(path, "is truncated or damaged: tensor '" + name + "' lies outside of it");
  }
  entry.begin = data_begin + static_cast<std::int64_t>(offsets[0]);
  entry.end = data_begin + static_cast<std::int64_t>(offsets[1]);
  const std::int64_t elements = elements_of(entry.shape);
  std::int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, dtype_bytes(entry.dtype), &bytes) ||
      dtype_bytes(entry.dtype) == 0 || bytes != entry.end - entry.begin) {
    fail(path, "is damaged: tensor '" + name + "' has a length that its shape does not explain");
  }
  return entry;
}

void expect_no_overlap(const std::filesystem::path& path, const SafetensorsHeader& header) {
  std::vector<std::pair<std::int64_t, std::int64_t>> extents;
  for (const auto& [name, entry] : header.tensors) extents.emplace_back(entry.begin, entry.end);
  std::sort(extents.begin(), extents.end());
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].second) fail(path, "is damaged: tensors overlap");
  }
}

SafetensorsHeader parse_header(const std::filesystem::path& path, const std::string& text,
                               std::int64_t file_bytes) {
  SafetensorsHeader header;
  const std::int64_t data_begin = static_cast<std::int64_t>(kLengthBytes + text.size());
  try {
    const Json json = Json::parse(text);
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        header.metadata = value.get<std::map<std::string, std::string>>();
      } else {
        header.tensors[name] = parse_entry(path, name, value, data_begin, file_bytes);
      }
    }
  } catch (const Json::exception& error) {
    fail(path, std::string("is damaged: its header is not valid (") + error.what() + ")");
  }
  expect_no_overlap(path, header);
  return header;
}

}  // namespace

std::int64_t dtype_bytes(const std::string& dtype) {
  static const std::map<std::string, std::int64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
      {"I32", 4},  {"U32", 4}, {"F32", 4}, {"F64", 8}, {"I64", 8}, {"U64", 8}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

void write_safetensors(DurableFile& file, const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const TensorBytes& tensor : tensors) {
    if (json.contains(tensor.name)) throw CheckpointError("two tensors are named " + tensor.name);
    json[tensor.name] = {{"dtype", tensor.dtype},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = json.dump();
  // The format allows trailing spaces.
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (const TensorBytes& tensor : tensors) file.write(tensor.bytes);
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path) {
  const Fd descriptor = open_for_reading(path);
  struct stat status = {};
  if (::fstat(descriptor.get(), &status) != 0) fail(path, "cannot be read");
  std::uint64_t length = 0;
  if (read_up_to(descriptor, std::as_writable_bytes(std::span(&length, 1)), path) != kLengthBytes ||
      length > kHeaderBytesMax ||
      length + kLengthBytes > static_cast<std::uint64_t>(status.st_size)) {
    fail(path, "is truncated or no safetensors file");
  }
  std::string text(length, ' ');
  if (read_up_to(descriptor, std::as_writable_bytes(std::span(text)), path) != text.size()) {
    fail(path, "is truncated");
  }
  return parse_header(path, text, status.st_size);
}

std::string stream_file(
    const std::filesystem::path& path,
    const std::function<void(std::int64_t offset, std::span<const std::byte> bytes)>& piece) {
  const Fd descriptor = open_for_reading(path);
  std::vector<std::byte> buffer(kPieceBytes);
  Checksum checksum;
  std::int64_t offset = 0;
  for (;;) {
    const std::size_t got = read_up_to(descriptor, buffer, path);
    if (got == 0) return checksum.hexadecimal();
    const std::span<const std::byte> bytes(buffer.data(), got);
    checksum.add(bytes);
    piece(offset, bytes);
    offset += static_cast<std::int64_t>(got);
  }
}

}  // namespace lrun::checkpoint
