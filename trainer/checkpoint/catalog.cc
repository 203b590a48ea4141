#include "trainer/checkpoint/catalog.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kPartial = ".partial.";
constexpr std::string_view kReplaced = ".replaced.";
// A larger manifest is damage: a million parameters' names fit.
constexpr std::uintmax_t kManifestBytesMax = 256U << 20;

std::string read_manifest_text(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error) throw CheckpointError("has no manifest.json (its save did not finish)");
  if (bytes > kManifestBytesMax) throw CheckpointError("has a manifest.json that is too large");
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void expect_length(const std::filesystem::path& folder, const FileRecord& file) {
  // A name with a slash would lead outside the folder.
  if (file.name.find('/') != std::string::npos)
    throw CheckpointError("has a manifest.json that names " + file.name);
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(folder / file.name, error);
  if (error) throw CheckpointError("lacks " + file.name);
  if (bytes != static_cast<std::uintmax_t>(file.bytes)) {
    throw CheckpointError("has " + file.name + " with " + std::to_string(bytes) +
                          " bytes instead of " + std::to_string(file.bytes));
  }
}

Manifest read_complete(const std::filesystem::path& folder, std::int64_t step) {
  Manifest manifest;
  const std::string text = read_manifest_text(folder / kManifestName);
  try {
    manifest = manifest_from_json(text);
  } catch (const CheckpointError& error) {
    throw CheckpointError(std::string("has a manifest.json that ") + error.what());
  }
  if (manifest.step != step) {
    throw CheckpointError("holds step " + std::to_string(manifest.step) +
                          ", not what its name says");
  }
  for (const FileRecord& file : manifest.files) expect_length(folder, file);
  return manifest;
}

bool is_leftover(const std::string& name) {
  return name.starts_with(kPrefix) &&
         (name.find(kPartial) != std::string::npos || name.find(kReplaced) != std::string::npos);
}

void examine(const std::filesystem::directory_entry& entry, Catalog* catalog) {
  const std::string name = entry.path().filename().string();
  const std::optional<std::int64_t> step = step_of(name);
  std::error_code ignored;
  if (is_leftover(name)) {
    catalog->ignored.push_back({entry.path(), "is what an interrupted save left behind"});
  } else if (!step) {
    catalog->ignored.push_back({entry.path(), "is not named step_NUMBER"});
  } else if (!entry.is_directory(ignored)) {
    catalog->ignored.push_back({entry.path(), "is not a folder"});
  } else {
    try {
      catalog->complete.push_back({entry.path(), read_complete(entry.path(), *step)});
    } catch (const CheckpointError& error) {
      catalog->ignored.push_back({entry.path(), error.what()});
    }
  }
}

}  // namespace

std::string folder_name(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step_%08lld", static_cast<long long>(step));
  return text;
}

std::string partial_name(std::int64_t step, Generation generation) {
  return folder_name(step) + std::string(kPartial) + to_string(generation);
}

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* first = name.data() + kPrefix.size();
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, step);
  if (error != std::errc() || end != last || step < 0) return std::nullopt;
  return step;
}

Catalog read_catalog(const std::filesystem::path& folder) {
  Catalog catalog;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    examine(entry, &catalog);
  }
  std::ranges::sort(catalog.complete, {},
                    [](const auto& found) { return std::pair(found.manifest.step, found.folder); });
  std::ranges::sort(catalog.ignored, {}, &IgnoredEntry::path);
  return catalog;
}

void prune(const std::filesystem::path& folder, int keep_last, Generation own) {
  const Catalog catalog = read_catalog(folder);
  const auto kept = static_cast<std::size_t>(std::max(keep_last, 1));
  if (catalog.complete.empty()) return;
  const std::size_t first = catalog.complete.size() > kept ? catalog.complete.size() - kept : 0;
  const std::int64_t oldest = catalog.complete[first].manifest.step;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_own = name.ends_with(std::string(kPartial) + to_string(own));
    const std::optional<std::int64_t> step = step_of(name);
    const bool is_old = step && *step < oldest && entry.is_directory(ignored);
    if (!(is_leftover(name) && !is_own) && !is_old) continue;
    // Without its manifest a half-removed checkpoint can never be taken for a complete one.
    std::filesystem::remove(entry.path() / kManifestName, ignored);
    std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace lrun::checkpoint
