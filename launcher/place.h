// Where this lrun stands in its job: alone, serving, joining, or whichever comes first.
//
// Owns the decision from options, scheduler and this machine; nothing is started here. Called once,
// by launcher/run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/run_options.h"
#include "launcher/scheduler.h"
#include "proto/ids.h"
#include "rendezvous/endpoint.h"

namespace lrun::launcher {

struct Place {
  NodeRange nodes;
  int slots = 1;
  std::string run_id;
  std::optional<GroupRank> fixed_rank;

  // This process serves the rendezvous; where its port may be taken, it joins `join` instead.
  bool serves = false;
  bool joins_if_taken = false;
  // TCP: the first of these that is free is served; empty for jobs of this machine alone.
  std::vector<rendezvous::Endpoint> listen;
  std::vector<rendezvous::Endpoint> join;

  // The job's socket on this machine, served beside `listen`; empty when joining by TCP.
  std::string socket;
  // The socket is needed by other agents, so it opens before anything starts; else it waits until
  // the workers run, because people can wait and workers should not.
  bool socket_is_needed = false;
  // The address other nodes' workers use for ours; empty: the client finds its end of the wire.
  std::string address;
  bool leaves_machine = false;  // TLS unless --insecure-network
  bool announces = false;       // print the line to type on another node
  std::string warning;
  Fd discovery_lock;  // released once the job knows this node
};

enum class Role { Run, AgentOnly, ServiceOnly };

// Throws std::runtime_error with one line when this machine's runtime folder cannot be used.
std::variant<Place, UsageError> choose_place(const RunOptions& options, Role role,
                                             const Scheduler& scheduler,
                                             const std::vector<std::string>& command);

}  // namespace lrun::launcher
