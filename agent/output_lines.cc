#include "agent/output_lines.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lrun::agent {

std::string expand_prefix(std::string_view line_prefix,
                          const std::map<std::string, std::string, std::less<>>& values) {
  std::string expanded;
  while (!line_prefix.empty()) {
    const std::size_t begin = line_prefix.find("${");
    const std::size_t end = begin == std::string_view::npos ? begin : line_prefix.find('}', begin);
    if (end == std::string_view::npos) break;
    const auto value = values.find(line_prefix.substr(begin + 2, end - begin - 2));
    expanded += line_prefix.substr(0, begin);
    expanded += value == values.end() ? line_prefix.substr(begin, end + 1 - begin)
                                      : std::string_view(value->second);
    line_prefix.remove_prefix(end + 1);
  }
  return expanded.append(line_prefix);
}

std::string LinePrefixer::feed(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kLineBytesMax - pending_.size());
    const std::size_t newline = piece.find('\n');
    if (newline == std::string_view::npos) {
      pending_ += piece;
      bytes.remove_prefix(piece.size());
      if (pending_.size() == kLineBytesMax) lines += finish();
    } else {
      lines.append(prefix_).append(pending_).append(piece.substr(0, newline + 1));
      pending_.clear();
      bytes.remove_prefix(newline + 1);
    }
  }
  return lines;
}

std::string LinePrefixer::finish() {
  if (pending_.empty()) return {};
  return prefix_ + std::exchange(pending_, {}) + '\n';
}

std::string last_lines(std::string_view text) {
  if (text.size() > kTailBytesMax) {
    const std::size_t newline = text.find('\n', text.size() - kTailBytesMax - 1);
    const bool is_one_line = newline == std::string_view::npos || newline + 1 == text.size();
    text.remove_prefix(is_one_line ? text.size() - kTailBytesMax : newline + 1);
  }
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t begin = text.size();
  for (int lines = 0; lines < kTailLinesMax && begin != std::string_view::npos && begin > 0;
       ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos && begin > 0) text.remove_prefix(begin + 1);
  return std::string(text);
}

void StreamTail::feed(std::string_view bytes) {
  constexpr std::size_t kKept = kTailBytesMax + 1;  // one more byte tells whether a line begins
  if (bytes.size() > kKept) bytes.remove_prefix(bytes.size() - kKept);
  recent_ += bytes;
  if (recent_.size() > 4 * kKept) recent_.erase(0, recent_.size() - kKept);
}

}  // namespace lrun::agent
