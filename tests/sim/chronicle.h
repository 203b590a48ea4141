// What happened, in words: the log of a world, its hash, its violations and its counts.
//
// Every line goes into the hash, so that two runs of one seed can be compared; notable lines are
// kept as text too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/ids.h"

namespace lrun::sim {

class Chronicle {
 public:
  void keep_text(bool kept) { keeps_text_ = kept; }
  // "[   1.250] a: Joining -> Starting".
  void note(Instant now, std::string_view who, std::string_view what);
  // Too frequent for a reader (heartbeats): only into the hash.
  void whisper(Instant now, std::string_view who, std::string_view what);
  // Something that must never happen; bounded by kViolationsMax.
  void violation(Instant now, std::string_view what);
  void count(const std::string& name) { ++counts_[name]; }

  const std::vector<std::string>& lines() const { return lines_; }
  const std::vector<std::string>& violations() const { return violations_; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }
  std::uint64_t hash() const { return hash_; }

 private:
  void mix(std::string_view text);

  bool keeps_text_ = true;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::vector<std::string> lines_;
  std::vector<std::string> violations_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace lrun::sim
