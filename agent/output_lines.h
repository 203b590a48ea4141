// Bytes of a worker into lines for people: prefixes for the console, the last lines for the report.
//
// Pure. Owns the rule that a prefix stands before whole lines only and that bytes are not altered;
// refuses to know descriptors. Used by agent/output.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lrun::agent {

// A longer line is shown in pieces of this size, each on a line with a prefix (files keep it
// whole).
inline constexpr std::size_t kLineBytesMax = 1024 * 1024;
// What a report shows of a worker's stderr.
inline constexpr std::size_t kTailBytesMax = 4 * 1024;
inline constexpr int kTailLinesMax = 20;

// Replaces ${name} for the given names; unknown names stay.
std::string expand_prefix(std::string_view line_prefix,
                          const std::map<std::string, std::string, std::less<>>& values);

class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix = {}) : prefix_(std::move(prefix)) {}
  // The whole lines that are there now, each with its prefix and newline.
  std::string feed(std::string_view bytes);
  // What is left at the end of the stream, as a line.
  std::string finish();

 private:
  std::string prefix_;
  std::string pending_;
};

// The last lines of `text`, within both limits.
std::string last_lines(std::string_view text);

// Keeps enough of a stream for last_lines().
class StreamTail {
 public:
  void feed(std::string_view bytes);
  std::string last_lines() const { return agent::last_lines(recent_); }

 private:
  std::string recent_;
};

}  // namespace lrun::agent
