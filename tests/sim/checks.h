// What only the world can see, and must hold after every step.
//
//   * a generation has one meaning: the assignments that agents received for it agree
//   * the budget: never more restarts than allowed, and never fewer than an agent knew before
//   * the fence: soon after a newer generation exists, no agent starts or runs plain workers of an
//     older one in the belief that they are current
//     and a fenced group of plain workers is killed, not asked
//   * commits: within one life of the service the blackboard accepts nothing for an older
//   generation
//     once it has for a newer one (a new life knows only what it was told: docs/simulation.md)
//   * no orphan: an agent that is over has no workers, one that begins a group has none of the last
//   * one worker a slot, values of its own generation only (in Workers)
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/events.h"
#include "tests/sim/chronicle.h"
#include "tests/sim/process.h"
#include "tests/sim/workers.h"

namespace lrun::sim {

class Checks {
 public:
  struct Limits {
    int max_restarts = 0;
    // From the publication of a generation (an agent's waking, the end of a new service's
    // listening) to the end of older ones.
    Duration fence{};
    Duration lease{};
  };
  Checks(Limits limits, Chronicle& chronicle) : limits_(limits), chronicle_(chronicle) {}

  void set_fence(Duration fence) { limits_.fence = fence; }
  // It has lost its memory: for one lease it only listens, and knows of no newer generation.
  void service_started(Instant now) {
    newest_commit_ = Generation{};
    service_listens_until_ = now + limits_.lease;
  }
  // After a step of an agent.
  void check(Instant now, const Process& process, const std::vector<agent::Action>& actions,
             const Workers& workers);
  // After a step of the service.
  void check(Instant now, const rendezvous::Event& event,
             const std::vector<rendezvous::Action>& actions);
  // Now and then, over all: what time alone can break.
  void check_fence(Instant now, const Process& process);

 private:
  void published(Instant now, Generation generation);
  void check_killed(Instant now, const Process& process, const Workers& workers);
  void check_meaning(Instant now, ProcessId process, const std::string& node,
                     const Assignment& assignment);
  void require(Instant now, bool holds, const std::string& sentence);

  struct Meaning {
    Assignment first;
    std::map<std::string, Assignment> by_node;
  };
  Limits limits_;
  Chronicle& chronicle_;
  Generation newest_;
  Instant newest_at_;
  Instant service_listens_until_{};
  Generation newest_commit_;
  std::map<Ticket, Generation> commits_;
  std::map<Generation, Meaning> meanings_;
  std::map<ProcessId, int> spent_known_;
};

}  // namespace lrun::sim
