// The worker's end of the channel to its agent: the only place of the trainer that touches it.
//
// Owns the inherited socket, the lines waiting to be sent, and what the agent has asked for.
// Refuses to know training. Called by the loop (progress, checkpoints, drain), by ChannelBootstrap
// (publish, lookup) and by the Comm's pulse; all functions from any thread. A reader thread of its
// own takes the agent's lines, so that an abort is seen at once; a dead agent or a broken line ends
// the channel, never the training.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "proto/channel.h"
#include "proto/worker_env.h"

namespace lrun::comm {

class WorkerChannel {
 public:
  // Null when the worker has no channel. Sends `hello`. Once per process: the descriptor is taken.
  // Throws std::runtime_error when the descriptor is no socket.
  static std::unique_ptr<WorkerChannel> open(const WorkerEnv& worker, bool live = false);

  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;

  // Never blocks, never throws. An agent that does not read loses progress lines first; when even
  // the others do not fit, the channel ends.
  void send(const channel::FromWorker& message);

  // Waits for somebody of the generation to publish `key`. Throws DeadlineExceeded, and
  // std::runtime_error when the channel ends or the agent aborts the generation meanwhile.
  std::string lookup(const std::string& key, std::chrono::milliseconds deadline);

  // False once the agent has gone or a line could not be understood.
  bool is_open() const;
  // Finish the step, save, and end: asked once, true for ever.
  bool is_drain_requested() const;
  // End now: the job is closed. True for ever.
  bool is_stop_requested() const;
  // The newest abort, for live workers.
  std::optional<channel::Abort> abort_request() const;
  // The newest assignment, for live workers.
  std::optional<channel::NewAssignment> new_assignment() const;

  // Called by the reader thread for each abort, for example to call Comm::abort. Null: none. Does
  // not return while the old one runs; must not be called from within.
  void on_abort(std::function<void(const channel::Abort&)> callback);

 private:
  WorkerChannel(Fd socket, Fd wake);

  void run();
  bool read_some();
  void accept(const channel::ToWorker& message);
  void end();
  bool flush();  // with mutex_ held; false: the agent is gone

  Fd socket_;
  Fd wake_;  // tells the reader thread to look at the queue of lines, or to stop
  channel::LineReader reader_;
  std::atomic<bool> is_stopping_ = false;

  mutable std::mutex mutex_;  // what the threads share, down to the thread
  std::condition_variable changed_;
  std::string outgoing_;
  std::map<std::string, std::string> values_;
  bool is_open_ = true;
  bool is_drain_requested_ = false;
  bool is_stop_requested_ = false;
  std::optional<channel::Abort> abort_;
  std::optional<channel::NewAssignment> assignment_;

  std::mutex callback_mutex_;  // held while on_abort_ runs
  std::function<void(const channel::Abort&)> on_abort_;

  std::thread thread_;
};

}  // namespace lrun::comm
