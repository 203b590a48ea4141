// What the log says about a service that cannot be reached (B048).
//
// Owns the rule that a repeated condition is logged when it changes, with a count, and not oftener
// than kOutageLogInterval. Called by agent/rendezvous_calls.
#pragma once

#include <string>

#include "proto/ids.h"

namespace lrun::agent {

// A service that is away for a minute costs a handful of lines.
inline constexpr Duration kOutageLogInterval = std::chrono::seconds(20);

class ServiceOutage {
 public:
  void failed(Instant now, const std::string& sentence);
  void answered(Instant now);

 private:
  int failures_ = 0;  // 0: the service answers
  Instant since_{};
  Instant logged_at_{};
};

}  // namespace lrun::agent
