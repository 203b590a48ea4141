// Where this worker stands: its environment, its agent, its peers.
//
// Owns the channel and the Comm in the order in which they must end. Main thread.
#pragma once

#include <memory>
#include <optional>

#include "proto/worker_env.h"
#include "trainer/comm/channel_bootstrap.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/worker_channel.h"

namespace lrun::train {

// Reads the environment that lrun gave this worker; none: a world of one. Throws loop::UsageError.
WorkerEnv read_worker_env();

struct Place {
  WorkerEnv worker;
  std::unique_ptr<comm::WorkerChannel> channel;  // null without an agent
  std::unique_ptr<comm::ChannelBootstrap> bootstrap;
  std::unique_ptr<comm::Comm> comm;
};

// Opens the channel and connects to all peers. Throws loop::UsageError, and the Comm's errors.
Place connect(const WorkerEnv& worker);

}  // namespace lrun::train
