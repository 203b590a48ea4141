// The agent's calls to its rendezvous, repeated until they are answered.
//
// Owns back-off and jitter, the Watch that is always open after the first Join, and what is said in
// the log about a service that cannot be reached. Turns answers into the supervisor's events;
// refuses to decide. Called by agent/agent, on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "agent/events.h"
#include "agent/metrics.h"
#include "rendezvous/link.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

// From the loop, never from inside a call.
struct RendezvousCallbacks {
  std::function<void(Event)> on_event;
  // A heartbeat or a watch was refused; joins that are refused are events.
  std::function<void(Refusal)> on_refusal;
  std::function<void(HeartbeatResult)> on_heartbeat;
};

class RendezvousCalls {
 public:
  // `link` outlives this. `seed` keeps the waits of many agents apart.
  RendezvousCalls(boost::asio::io_context& loop, rendezvous::Link& link, std::uint64_t seed,
                  RendezvousCallbacks callbacks);
  ~RendezvousCalls();

  // Replaces an earlier one that is not answered yet. The first opens the Watch.
  void join(const JoinRequest& request);
  // Not repeated: the supervisor sends the next one.
  void heartbeat(const HeartbeatRequest& request);
  void leave(const LeaveRequest& request);
  // Both are given up when another generation has begun.
  void publish(const PublishRequest& request);
  void lookup(LocalRank local_rank, const LookupRequest& request);
  void enter_generation(Generation generation);

  // No more repetition and no more callbacks, except this one: when every leave is answered, at the
  // latest after kLeaveLimit.
  void end(const std::function<void()>& on_ended);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// From the last action to the end of the process, when the service does not answer.
inline constexpr Duration kLeaveLimit = std::chrono::seconds(3);

}  // namespace lrun::agent
