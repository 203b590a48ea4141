// Small values that workers publish for each other, scoped to one generation.
//
// Owns the values and the lookups that wait for one. Refuses to know nodes, phases and what the
// values mean. Pure. Called by the state machine. Everything is bounded: it is not a database.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

inline constexpr std::size_t kKeyBytesMax = 256;
inline constexpr std::size_t kValueBytesMax = 4096;
// Room for several addresses per worker of a group of a thousand workers, and never more memory
// than kBlackboardBytesMax.
inline constexpr std::size_t kKeysMax = 16'384;
inline constexpr std::size_t kBlackboardBytesMax = std::size_t{16} << 20;
// Every worker may wait for a few others at once.
inline constexpr std::size_t kWaitingLookupsMax = 16'384;

class Blackboard {
 public:
  // Forgets all values and serves `generation` from now on. Lookups that wait belong to an older
  // one and are refused as stale.
  void open(Generation generation, std::vector<Action>& actions);
  // Refuses lookups that wait and everything that comes later, with `refusal`.
  void close(const Refusal& refusal, std::vector<Action>& actions);

  // Acknowledges, and answers the lookups that waited for the key. A later value replaces an
  // earlier one. Refused: StaleGeneration, or BadRequest when a limit is broken.
  void publish(Ticket ticket, const PublishRequest& request, std::vector<Action>& actions);
  // Answered at once if there is a value, else by a later publish, else AskAgain at `ask_again_at`.
  void lookup(Ticket ticket, const LookupRequest& request, Instant ask_again_at,
              std::vector<Action>& actions);
  // The client of this lookup went away. False: no such lookup waits.
  bool forget(Ticket ticket);

  void pass_time(Instant now, std::vector<Action>& actions);
  std::optional<Instant> next_deadline() const;

 private:
  using Waiting = std::map<Ticket, std::pair<std::string, Instant>>;  // key, time to ask again
  std::optional<Refusal> refusal_for(Generation generation, const std::string& key) const;
  std::optional<Refusal> refusal_for_value(const PublishRequest& request) const;
  std::size_t size_after(const PublishRequest& request) const;
  void answer_waiting(const std::string& key, std::vector<Action>& actions);
  void refuse_waiting(const Refusal& refusal, std::vector<Action>& actions);

  Generation generation_;
  std::optional<Refusal> closed_;
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;  // of keys and values
  // The lookups that wait, and the same in the two orders in which they end.
  Waiting waiting_;
  std::map<std::string, std::set<Ticket>> waiting_by_key_;
  std::set<std::pair<Instant, Ticket>> waiting_by_deadline_;
};

}  // namespace lrun::rendezvous
