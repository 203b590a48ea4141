// Which failure came first on this node, and what it was in one sentence.
//
// Owns the order of what was seen and the words for it. A worker that ends because a peer's end
// broke its communicator is a victim: it is never the first cause while a culprit is known. Called
// by the supervisor; pure text, no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/events.h"

namespace lrun::agent {

// Who failed: enough to find the process and its log.
struct Culprit {
  NodeId node;
  std::optional<GlobalRank> global_rank{};
  std::optional<LocalRank> local_rank{};
  int pid = 0;
};

FirstCause cause_of_exit(const Culprit& culprit, const ExitStatus& status,
                         std::string_view last_words);
FirstCause cause_of_report(const Culprit& culprit, const channel::Failed& failed);
FirstCause cause_of_stall(const Culprit& culprit, Duration timeout, std::int64_t step);
FirstCause cause_of_spawn_failure(const Culprit& culprit, std::string_view reason);
FirstCause cause_of_keeper_loss(const NodeId& node);
FirstCause cause_of_lost_lease(const NodeId& node, Duration silence);

// "SIGSEGV" for 11; "signal 63" for one without a name.
std::string signal_name(int number);

// One printable line of at most `bytes_max` bytes: control characters and runs of blanks become one
// blank, a cut text ends in "…". Bytes that are not UTF-8 stay as they are.
std::string one_line(std::string_view text, std::size_t bytes_max);

// The failures of one generation on this node.
class RootCause {
 public:
  // True when it is the first of this generation that is no victim's.
  bool add(const FirstCause& cause, bool is_victim);
  // The first culprit, else the first victim.
  const std::optional<FirstCause>& first() const { return culprit_ ? culprit_ : victim_; }
  bool has_culprit() const { return culprit_.has_value(); }
  void clear() { *this = RootCause(); }

 private:
  std::optional<FirstCause> culprit_;
  std::optional<FirstCause> victim_;
};

}  // namespace lrun::agent
