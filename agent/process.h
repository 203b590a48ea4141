// The agent's side of the keeper: orders out, reports in, on the loop.
//
// Owns the keeper and the queue of orders; turns reports into callbacks. When the keeper dies it
// ends what is left and starts another. Refuses to know local ranks. Called by agent/workers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/events.h"
#include "agent/keeper.h"
#include "agent/keeper_messages.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

// From the loop, never from inside a call.
struct ProcessCallbacks {
  std::function<void(WorkerSerial, int pid)> on_spawned;
  std::function<void(WorkerSerial, std::string reason)> on_spawn_failed;
  std::function<void(WorkerSerial, ExitStatus)> on_exited;
  // Every worker is gone; nothing more is reported of them.
  std::function<void()> on_keeper_lost;
};

class Processes {
 public:
  Processes(boost::asio::io_context& loop, Keeper keeper, ProcessCallbacks callbacks);
  ~Processes();

  // Answered by on_spawned or on_spawn_failed.
  void spawn(WorkerSerial worker, const SpawnPayload& payload, SpawnDescriptors descriptors);
  void signal(WorkerSerial worker, int signal_number);
  // Ends every process and the keeper; nothing is called back any more.
  void end();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::agent
