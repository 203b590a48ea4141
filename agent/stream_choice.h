// Which streams of which worker: the grammar of --redirects and --tee.
//
// Pure. Owns the grammar `0|1|2|3` or `local rank:value,…` (docs of torchrun); refuses to know
// files. The launcher parses, agent/output asks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "proto/ids.h"

namespace lrun::agent {

enum class Stream { Stdout, Stderr };

// One line for the user: names the value and what is accepted.
struct UsageError {
  std::string sentence;
};

// Bits: 1 stdout, 2 stderr. Local ranks that are not named get `others`.
struct StreamChoice {
  int others = 0;
  std::map<LocalRank, int> of_rank{};
  bool has(LocalRank local_rank, Stream stream) const;
  bool is_empty() const;
  friend bool operator==(const StreamChoice&, const StreamChoice&) = default;
};

// `option` is named in the error, such as "--tee".
std::variant<StreamChoice, UsageError> parse_stream_choice(std::string_view option,
                                                           std::string_view text);

}  // namespace lrun::agent
