// The nodes the rendezvous knows, and the evidence for and against each.
//
// Owns members, their leases and their held calls. Refuses to know phases and generations: it says
// who is probably gone, the state machine decides what follows. Pure.
//
// Two kinds of evidence. Gone: the last held call of a node ended, and it did not call again within
// the grace. Silent: its lease ended. When many vanish within one grace it is the network or the
// service, and leases decide.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

// Far above the largest group tried (1,000 nodes); bounds memory.
inline constexpr std::size_t kNodesMax = 16'384;
// All nodes together send at most so many heartbeats a second: the interval grows with the group.
inline constexpr int kHeartbeatsPerSecondMax = 512;
// This share of the nodes may vanish within one grace and be believed.
inline constexpr double kVanishShareMax = 0.05;

// A call that is answered later.
struct HeldCall {
  Ticket ticket;
  Instant ask_again_at;
};

struct Member {
  NodeFacts facts;
  // It was heard but has neither joined nor reported a running generation.
  bool is_stranger = true;
  Role role = Role::Waiting;
  // Has joined and received no assignment since: a candidate for the next group.
  bool is_ready = false;
  bool is_draining = false;
  Instant lease_end;
  Instant heard_at;
  Instant waits_since;
  std::optional<HeldCall> join;
  std::optional<HeldCall> watch;
  // When the last Join was told to ask again: until it does, the node still waits.
  std::optional<Instant> asked_again_at;
  // When its last held call ended; none once it called again.
  std::optional<Instant> vanished_at;
  // Too many vanished together: only the end of the lease counts against it.
  bool is_judged_by_lease = false;
  std::optional<Instant> last_vanished_at;
  std::optional<Assignment> assignment;
  Instant assigned_at;
  // What the last answered Watch said. Said once; heartbeats repeat it if it was lost.
  std::optional<Directive> told;
  AgentState state = AgentState::Joining;
  WorkerProgress progress;

  // A held call has ended and the grace, in which the node may call again, is not over.
  bool is_in_grace() const { return vanished_at.has_value() && !is_judged_by_lease; }
  bool is_candidate() const { return is_ready && !is_draining; }
};

class Members {
 public:
  explicit Members(const Config& config) : config_(&config) {}

  using Map = std::map<NodeId, Member>;
  Map& all() { return members_; }
  const Map& all() const { return members_; }
  Member* find(const NodeId& node);
  const Member* find(const NodeId& node) const;
  // The member that holds this ticket.
  Member* find(Ticket ticket);

  Member& add(const NodeFacts& facts, Instant now);
  void remove(const NodeId& node) { members_.erase(node); }
  // The node was heard: its lease begins again, and nothing speaks against it any more.
  void renew(Member& member, Instant now) const;
  void extend_leases(Duration lag);
  // The call went away without an answer; without another one open, the node has vanished.
  void end_call(Member& member, Ticket ticket, Instant now) const;

  // When the member is given up, unless it is heard before.
  Instant departs_at(const Member& member) const;
  // The evidence against a member at `now`. When too many vanished together it is left to its lease
  // from here on, and must join again.
  std::optional<Evidence> judge(Member& member, Instant now) const;
  // Its connection is closed or its lease over: another agent may take its name.
  bool is_replaceable(const Member& member, Instant now) const;
  // Two heartbeats are missing, or its calls have ended: perhaps it is what failed.
  bool is_in_doubt(const Member& member, Instant now) const;

  // Told to the agents in replies.
  Duration heartbeat_interval() const;
  Duration lease() const;

 private:
  std::size_t vanished_with(const Member& member) const;

  const Config* config_;
  Map members_;
};

}  // namespace lrun::rendezvous
