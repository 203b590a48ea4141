#include "trainer/checkpoint/preflight.h"

#include <vector>

#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

constexpr std::size_t kTrialBytes = 4096;
// Headers, manifest and logs.
constexpr std::int64_t kSlackBytes = 1 << 20;

std::int64_t bytes_in(const std::filesystem::path& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  const std::filesystem::recursive_directory_iterator end;
  while (!error && entry != end) {
    std::error_code gone;  // another rank's trial file may have vanished
    const std::uintmax_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) bytes += static_cast<std::int64_t>(size);
    entry.increment(error);
  }
  return bytes;
}

std::string in_mebibytes(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

void write_trial(const std::filesystem::path& folder, GlobalRank rank) {
  const std::filesystem::path trial = folder / (".trial." + std::to_string(rank.value));
  std::error_code ignored;
  try {
    DurableFile file(trial);
    file.write(std::vector<std::byte>(kTrialBytes));
    file.finish();
  } catch (...) {
    std::filesystem::remove(trial, ignored);
    throw;
  }
  std::filesystem::remove(trial, ignored);
}

}  // namespace

std::string check_folder(const std::filesystem::path& folder, std::int64_t bytes_needed,
                         GlobalRank rank) {
  try {
    make_folder(folder);
    write_trial(folder, rank);
  } catch (const CheckpointError& error) {
    return std::string("checkpoint folder is not usable: ") + error.what() +
           "; make room or permissions there, or set trainer.default_root_dir";
  }
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  const std::int64_t missing = bytes_needed - bytes_in(folder);
  if (error || missing <= 0 || space.available >= static_cast<std::uintmax_t>(missing)) return {};
  return "checkpoints need " + in_mebibytes(missing) + " more in " + folder.string() + ", where " +
         in_mebibytes(static_cast<std::int64_t>(space.available)) +
         " are free; make room, lower checkpoint.keep_last or set trainer.default_root_dir";
}

std::int64_t estimate_bytes(std::int64_t elements, int kinds, int kept) {
  const std::int64_t one =
      elements * kinds * static_cast<std::int64_t>(sizeof(float)) + kSlackBytes;
  return one * (kept + 1);
}

}  // namespace lrun::checkpoint
