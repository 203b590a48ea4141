// Reads TensorBoard's event files, for tests: an own decoder, so that writer and reader can
// disagree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lrun::loop {

struct LoggedEvent {
  std::int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;

  std::set<std::string> tags() const;
  std::optional<float> value(const std::string& tag) const;
};

// Throws std::runtime_error where a length, a checksum or a field is wrong.
std::vector<LoggedEvent> read_event_file(const std::filesystem::path& file);

}  // namespace lrun::loop
