#include "trainer/checkpoint/loader.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/checkpoint/agreement.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/writer.h"

namespace lrun::checkpoint {
namespace {

// One run of bytes in a file and where it goes.
struct Copy {
  std::int64_t begin = 0;  // file offsets
  std::int64_t end = 0;
  std::byte* destination = nullptr;
};

// Copies the part of `copy` that lies in the piece at `offset`.
void take(const Copy& copy, std::int64_t offset, std::span<const std::byte> bytes) {
  const std::int64_t begin = std::max(copy.begin, offset);
  const std::int64_t end = std::min(copy.end, offset + static_cast<std::int64_t>(bytes.size()));
  if (begin >= end) return;
  std::memcpy(copy.destination + (begin - copy.begin), bytes.data() + (begin - offset),
              static_cast<std::size_t>(end - begin));
}

const TensorEntry& entry_of(const SafetensorsHeader& header, const std::string& name,
                            const std::filesystem::path& path) {
  const auto found = header.tensors.find(name);
  if (found == header.tensors.end()) {
    throw CheckpointError("file " + path.string() + " lacks tensor '" + name + "'");
  }
  return found->second;
}

// What this rank takes of one tensor out of one file.
void plan_tensor(const LoadTarget& target, const LoadTarget::Piece& piece,
                 const TensorRecord& tensor, const FileRecord& file,
                 const SafetensorsHeader& header, const std::filesystem::path& path,
                 std::vector<Copy>* copies) {
  constexpr std::int64_t kElementBytes = sizeof(float);
  const std::int64_t file_begin = std::max(file.begin, tensor.offset);
  const std::int64_t file_end = std::min(file.end, tensor.offset + tensor.elements);
  const std::int64_t begin = std::max(file_begin, target.owned.begin);
  const std::int64_t end = std::min(file_end, target.owned.end);
  if (begin >= end) return;
  const TensorEntry& entry = entry_of(header, piece.kind + "/" + tensor.name, path);
  if (entry.dtype != "F32" || entry.end - entry.begin != (file_end - file_begin) * kElementBytes) {
    throw CheckpointError("file " + path.string() + " does not fit its manifest");
  }
  const std::int64_t skipped = (begin - file_begin) * kElementBytes;
  auto* first = piece.values.data() + (begin - target.owned.begin);
  copies->push_back({.begin = entry.begin + skipped,
                     .end = entry.begin + skipped + (end - begin) * kElementBytes,
                     .destination = reinterpret_cast<std::byte*>(first)});
}

void plan_buffers(const Manifest& manifest, const SafetensorsHeader& header,
                  const std::filesystem::path& path, Loaded* loaded, std::vector<Copy>* copies) {
  for (const std::string& name : manifest.buffers) {
    const TensorEntry& entry = entry_of(header, "buffer/" + name, path);
    LoadedBuffer& buffer = loaded->buffers[name];
    buffer = {.dtype = entry.dtype,
              .shape = entry.shape,
              .bytes = std::vector<std::byte>(static_cast<std::size_t>(entry.end - entry.begin))};
    copies->push_back({.begin = entry.begin, .end = entry.end, .destination = buffer.bytes.data()});
  }
}

void load_file(const LoadTarget& target, const FileRecord& file, bool with_buffers,
               Loaded* loaded) {
  const std::filesystem::path path = loaded->folder / file.name;
  const SafetensorsHeader header = read_safetensors_header(path);
  std::vector<Copy> copies;
  for (const LoadTarget::Piece& piece : target.pieces) {
    for (const TensorRecord& tensor : target.tensors) {
      plan_tensor(target, piece, tensor, file, header, path, &copies);
    }
  }
  if (with_buffers) plan_buffers(loaded->manifest, header, path, loaded, &copies);
  const std::string checksum = stream_file(path, [&](std::int64_t offset, auto bytes) {
    for (const Copy& copy : copies) take(copy, offset, bytes);
  });
  if (checksum != file.checksum) {
    throw CheckpointError("file " + path.string() + " is damaged: its checksum is " + checksum +
                          ", the manifest says " + file.checksum);
  }
}

void load_owned(const LoadTarget& target, Loaded* loaded) {
  bool is_first = true;
  for (const FileRecord& file : loaded->manifest.files) {
    const bool with_buffers = is_first && !loaded->manifest.buffers.empty();
    const bool overlaps = file.begin < target.owned.end && target.owned.begin < file.end;
    if (overlaps || with_buffers) load_file(target, file, with_buffers, loaded);
    is_first = false;
  }
}

// The sentence of the first rank that could not read its part; empty: all could.
std::string load_on_all(const LoadTarget& target, comm::Comm& comm, Loaded* loaded) {
  std::string failure;
  try {
    load_owned(target, loaded);
  } catch (const CheckpointError& error) {
    failure = error.what();
  }
  return first_failure(comm, failure);
}

}  // namespace

std::optional<Loaded> load_newest(const std::filesystem::path& folder, const LoadTarget& target,
                                  comm::Comm& comm,
                                  const std::function<void(const std::string&)>& warn) {
  const Catalog catalog = read_catalog(folder);
  warn_of_ignored(catalog, warn);
  const std::vector<std::int64_t> common = steps_on_all_ranks(catalog, comm, folder, warn);
  std::string last_failure;
  for (auto step = common.rbegin(); step != common.rend(); ++step) {
    const auto found = std::ranges::find_if(
        catalog.complete, [&](const auto& entry) { return entry.manifest.step == *step; });
    Loaded loaded{.folder = found->folder, .manifest = found->manifest, .buffers = {}};
    expect_same_model(target, loaded);
    last_failure = load_on_all(target, comm, &loaded);
    if (last_failure.empty()) return loaded;
    warn(last_failure + "; the checkpoint before it is used instead");
  }
  if (last_failure.empty()) return std::nullopt;
  throw CheckpointError(last_failure + "; no older checkpoint is left in " + folder.string() +
                        ": restore one, or train anew in another trainer.default_root_dir");
}

}  // namespace lrun::checkpoint
