// The record that a worker leaves in TORCHELASTIC_ERROR_FILE.
//
// Owns reading both of torchrun's forms, tolerantly and within a bound: whatever is in the file is
// data, never a fault of the agent. Called by agent/workers.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::agent {

// Larger records are not read: a call stack with every local variable fits.
inline constexpr std::size_t kErrorRecordBytesMax = 64 * 1024;

struct ErrorRecord {
  std::string message{};     // "Type: text"
  std::string call_stack{};  // empty in the second form
  std::optional<std::chrono::system_clock::time_point> written_at{};
  // Set when the file could not be understood; then the rest is empty.
  std::string complaint{};
};

// None: no file, or an empty path.
std::optional<ErrorRecord> read_error_record(const std::string& path);
ErrorRecord parse_error_record(std::string_view text);

}  // namespace lrun::agent
