// The workers of this node as the world has them: process, channel and output of each.
//
// Owns what carries out SpawnWorker, SignalWorker and TellWorker and turns what happens into the
// supervisor's events, in order: what a worker said and printed last comes before its exit. Decides
// nothing. Called by agent/agent, on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/events.h"
#include "agent/failure_report.h"
#include "agent/keeper.h"
#include "agent/output.h"
#include "proto/worker_env.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

struct WorkerOptions {
  std::vector<std::string> command{};
  Environment base_environment{};
  std::string signals_to_handle{};
};

// A worker's end, as the event tells it and as the report shows it.
struct WorkerEnd {
  WorkerExited event;
  FailedWorker details;
  bool was_signalled = false;  // by the agent
};

// From the loop, never from inside a call.
struct WorkerCallbacks {
  std::function<void(Event)> on_event;
  std::function<void(WorkerEnd)> on_end;  // instead of an event WorkerExited
};

class Workers {
 public:
  // `output` outlives this.
  Workers(boost::asio::io_context& loop, WorkerOptions options, Keeper keeper, Output& output,
          WorkerCallbacks callbacks);
  ~Workers();

  void spawn(const SpawnWorker& order);
  void signal(const SignalWorker& order);
  void tell(const TellWorker& order);
  // Ends every process and the keeper.
  void end();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::agent
