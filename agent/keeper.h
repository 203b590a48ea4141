// The process between an agent and its workers, as the agent holds it.
//
//   agent ── guard ── keeper ── worker, worker, …        each of the first three is a child
//   subreaper
//
// The keeper is the parent of all workers and ends the whole tree when the agent dies. The guard
// does the same when agent and keeper die together, the agent when keeper and guard do: two of the
// three may be killed at once and nothing stays behind, daemonised grandchildren included.
//
// Owns the connection and the end of the tree; refuses to know what a worker is for. Children that
// the agent's process had before (a script's, before it became lrun) are spared; later ones it must
// not have: whatever reaches it by re-parenting is ended.
#pragma once

#include <utility>
#include <vector>

#include "base/fd.h"

namespace lrun::agent {

class Keeper {
 public:
  // Forks guard and keeper. Call it before any thread, and before signal dispositions are changed:
  // workers of this and of later keepers start with those of the first call. Later calls, after a
  // keeper was killed, are safe beside gRPC's threads. Throws std::system_error.
  static Keeper start();

  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&&) noexcept = delete;
  // Ends the tree, bounded by three times kTreeEndLimit.
  ~Keeper();

  // Sequenced packets of agent/keeper_messages.h; its end of file means: the keeper is gone.
  const Fd& connection() const { return connection_; }
  int guard_pid() const { return guard_pid_; }
  int keeper_pid() const { return keeper_pid_; }

  // Closes the connection and waits until guard, keeper and every descendant are gone, bounded;
  // ends by itself what has been re-parented to this process. Idempotent. False: something stayed.
  bool end_tree();

 private:
  Keeper(Fd connection, Fd life, int guard_pid)
      : connection_(std::move(connection)), life_(std::move(life)), guard_pid_(guard_pid) {}
  Fd connection_;
  Fd life_;  // closes with this process: tells the guard
  int guard_pid_ = -1;
  int keeper_pid_ = -1;
  std::vector<int> earlier_children_;
};

}  // namespace lrun::agent
