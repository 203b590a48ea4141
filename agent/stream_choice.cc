#include "agent/stream_choice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

namespace lrun::agent {
namespace {

constexpr int bit(Stream stream) { return stream == Stream::Stdout ? 1 : 2; }

std::optional<int> number(std::string_view text, int most) {
  int parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (parsed < 0 || parsed > most) return std::nullopt;
  return parsed;
}

// Local ranks beyond this are a slip of the keyboard, not a machine.
constexpr int kLocalRankMax = 65535;

}  // namespace

bool StreamChoice::has(LocalRank local_rank, Stream stream) const {
  const auto found = of_rank.find(local_rank);
  return ((found == of_rank.end() ? others : found->second) & bit(stream)) != 0;
}

bool StreamChoice::is_empty() const {
  for (const auto& [local_rank, streams] : of_rank) {
    if (streams != 0) return false;
  }
  return others == 0;
}

std::variant<StreamChoice, UsageError> parse_stream_choice(std::string_view option,
                                                           std::string_view text) {
  const UsageError error{
      std::string(option) + ": '" + std::string(text.substr(0, 64)) +
      "' is not accepted: give 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a "
      "list such as 0:3,1:2 (local rank:value)"};
  StreamChoice choice;
  if (text.find(':') == std::string_view::npos) {
    const std::optional<int> streams = number(text, 3);
    if (!streams) return error;
    choice.others = *streams;
    return choice;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, comma - at);
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) return error;
    const std::optional<int> local_rank = number(item.substr(0, colon), kLocalRankMax);
    const std::optional<int> streams = number(item.substr(colon + 1), 3);
    if (!local_rank || !streams) return error;
    choice.of_rank[LocalRank{*local_rank}] = *streams;
    at = comma + 1;
  }
  return choice;
}

}  // namespace lrun::agent
