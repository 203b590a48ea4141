// What the loop tells its agent, and what the agent asks of the loop.
//
// Owns the newest progress; refuses to know the channel's lines (comm/worker_channel.h). Works, and
// does nothing, without a channel. Thread: compute, except pulse().
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "proto/channel.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/worker_channel.h"

namespace lrun::loop {

class AgentLink {
 public:
  // `channel` may be null. While this object lives, the Comm's pulse tells the agent whom this
  // worker waits for, so that silence means a stall.
  AgentLink(comm::WorkerChannel* channel, comm::Comm& comm);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;

  // After each step; sent at once when `is_logged`, else about once a second.
  void progress(Instant now, std::int64_t step, std::int64_t samples, double samples_per_second,
                bool is_logged);
  // Until the next progress the worker saves.
  void saving();
  void checkpoint_saved(std::int64_t step, const std::string& path);
  void failed(const std::string& reason, std::optional<GlobalRank> peer);

  bool wants_stop() const;

 private:
  void pulse(GlobalRank waiting_for);

  comm::WorkerChannel* channel_;
  comm::Comm& comm_;
  std::mutex mutex_;  // between the compute thread and the Comm's pulse
  channel::Progress newest_;
  Instant next_send_{};
};

}  // namespace lrun::loop
