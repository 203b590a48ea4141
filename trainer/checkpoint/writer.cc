#include "trainer/checkpoint/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

using Json = nlohmann::json;

std::string shard_name(int global_rank, int world_size) {
  char text[64];
  std::snprintf(text, sizeof text, "shard-%05d-of-%05d.safetensors", global_rank, world_size);
  return text;
}

// The part of one logical tensor that lies in the shard, under the name KIND/TENSOR. A tensor that
// lies in it as a whole keeps its shape, so that a checkpoint of one worker reads like any other
// safetensors file.
void append_piece(const Shard& shard, const Shard::Piece& piece, const TensorRecord& tensor,
                  std::vector<TensorBytes>* tensors) {
  const std::int64_t begin = std::max(shard.owned.begin, tensor.offset);
  const std::int64_t end = std::min(shard.owned.end, tensor.offset + tensor.elements);
  if (begin >= end) return;
  const bool is_whole = end - begin == tensor.elements;
  const auto values = piece.values.subspan(static_cast<std::size_t>(begin - shard.owned.begin),
                                           static_cast<std::size_t>(end - begin));
  tensors->push_back({.name = piece.kind + "/" + tensor.name,
                      .dtype = "F32",
                      .shape = is_whole ? tensor.shape : std::vector<std::int64_t>{end - begin},
                      .bytes = std::as_bytes(values)});
}

std::vector<TensorBytes> tensors_of(const Shard& shard) {
  std::vector<TensorBytes> tensors;
  for (const Shard::Piece& piece : shard.pieces) {
    for (const TensorRecord& tensor : shard.tensors) append_piece(shard, piece, tensor, &tensors);
  }
  for (TensorBytes buffer : shard.buffers) {
    buffer.name = "buffer/" + buffer.name;
    tensors.push_back(std::move(buffer));
  }
  return tensors;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string to_line(const ShardReport& report, const std::filesystem::path& partial) {
  return Json{{"name", report.file.name},
              {"bytes", report.file.bytes},
              {"checksum", report.file.checksum},
              {"begin", report.file.begin},
              {"end", report.file.end},
              {"folder", partial.string()},
              {"error", report.error}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ShardReport from_line(const std::string& line, const std::filesystem::path& partial) {
  const Json json = Json::parse(line);
  ShardReport report{.file = {.name = json.at("name"),
                              .bytes = json.at("bytes"),
                              .checksum = json.at("checksum"),
                              .begin = json.at("begin"),
                              .end = json.at("end")},
                     .error = json.at("error")};
  // Two folders would each hold half a checkpoint.
  if (report.error.empty() && json.at("folder") != partial.string()) {
    report.error = "ranks write to different folders: " + partial.string() + " and " +
                   json.at("folder").get<std::string>();
  }
  return report;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  DurableFile file(folder / kManifestName);
  file.write(bytes_of(to_json(manifest)));
  file.finish();
  sync_folder(folder);
}

// Puts `partial` in the place of `target`, which may exist: an earlier run came as far as this.
void move_into_place(const std::filesystem::path& partial, const std::filesystem::path& target) {
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0)
    return;
  if (errno != EEXIST && errno != EINVAL) throw write_error(target, errno);
  const std::filesystem::path aside = partial.string() + ".replaced.0";
  if (::rename(target.c_str(), aside.c_str()) != 0 && errno != ENOENT)
    throw write_error(aside, errno);
  if (::rename(partial.c_str(), target.c_str()) != 0) throw write_error(target, errno);
}

}  // namespace

std::vector<TensorRecord> tensor_records(const parallel::FlatLayout& layout) {
  std::vector<TensorRecord> tensors;
  for (const parallel::Slot& slot : layout.slots) {
    tensors.push_back(
        {.name = slot.name, .shape = slot.shape, .offset = slot.offset, .elements = slot.elements});
  }
  return tensors;
}

std::string layout_checksum(const std::vector<TensorRecord>& tensors) {
  Json json = Json::array();
  for (const TensorRecord& tensor : tensors)
    json.push_back({tensor.name, tensor.shape, tensor.offset});
  Checksum checksum;
  checksum.add(bytes_of(json.dump()));
  return checksum.hexadecimal();
}

ShardReport write_shard(const std::filesystem::path& partial, const std::string& file_name,
                        const Shard& shard) {
  ShardReport report;
  report.file = {.name = file_name,
                 .bytes = 0,
                 .checksum = {},
                 .begin = shard.owned.begin,
                 .end = shard.owned.end};
  try {
    make_folder(partial);
    DurableFile file(partial / file_name);
    write_safetensors(file, tensors_of(shard), {{"format", "lrun"}});
    report.file.bytes = file.bytes();
    report.file.checksum = file.checksum();
    file.finish();
  } catch (const CheckpointError& error) {
    report.error = error.what();
  }
  return report;
}

SaveOutcome Writer::save(const Shard& shard, std::int64_t step, const TrainingState& state) {
  const std::filesystem::path partial = options_.folder / partial_name(step, options_.generation);
  const std::string name = shard_name(comm_.rank().value, comm_.world_size());
  Shard written = shard;
  if (comm_.rank().value != 0) written.buffers.clear();
  return commit(shard, write_shard(partial, name, written), step, state);
}

SaveOutcome Writer::commit(const Shard& shard, const ShardReport& mine, std::int64_t step,
                           const TrainingState& state) {
  const std::filesystem::path partial = options_.folder / partial_name(step, options_.generation);
  SaveOutcome outcome{.folder = options_.folder / folder_name(step), .bytes = 0, .error = {}};
  Manifest manifest{.generation = options_.generation,
                    .step = step,
                    .world_size = comm_.world_size(),
                    .layout = layout_checksum(shard.tensors),
                    .kinds = {},
                    .files = {},
                    .tensors = shard.tensors,
                    .buffers = {},
                    .state = state};
  for (const Shard::Piece& piece : shard.pieces) manifest.kinds.push_back(piece.kind);
  for (const TensorBytes& buffer : shard.buffers) manifest.buffers.push_back(buffer.name);

  for (const auto& line : comm_.all_gather_bytes(bytes_of(to_line(mine, partial)))) {
    const ShardReport report = from_line(text_of(line), partial);
    if (outcome.error.empty()) outcome.error = report.error;
    outcome.bytes += report.file.bytes;
    manifest.files.push_back(report.file);
  }
  const bool is_first = comm_.rank().value == 0;
  if (is_first && outcome.error.empty()) outcome.error = publish(manifest);
  if (is_first && !outcome.error.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(partial, ignored);
  }
  // Nobody returns before rank 0 has committed or cleaned up.
  outcome.error = text_of(
      comm_.all_gather_bytes(is_first ? bytes_of(outcome.error) : std::span<const std::byte>())[0]);
  if (is_first && outcome.is_saved())
    prune(options_.folder, options_.keep_last, options_.generation);
  return outcome;
}

std::string Writer::publish(const Manifest& manifest) const {
  const std::filesystem::path partial =
      options_.folder / partial_name(manifest.step, options_.generation);
  try {
    for (const FileRecord& file : manifest.files) {
      std::error_code error;
      const auto bytes = std::filesystem::file_size(partial / file.name, error);
      if (error || bytes != static_cast<std::uintmax_t>(file.bytes)) {
        return "global rank 0 does not see " + (partial / file.name).string() +
               ": the checkpoint folder must be the same on every node";
      }
    }
    write_manifest(partial, manifest);
    move_into_place(partial, options_.folder / folder_name(manifest.step));
    sync_folder(options_.folder);
    return {};
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

}  // namespace lrun::checkpoint
