// Whether to stop at this step border, agreed by all ranks.
//
// A signal or a drain reaches ranks at different moments; a rank that stopped alone would leave the
// others waiting. So each border gathers one byte per rank. Compute thread.
#pragma once

#include "trainer/comm/comm.h"
#include "trainer/loop/agent_link.h"

namespace lrun::loop {

struct StopWish {
  int signal = 0;       // to exit with 128 + signal; 0: go on
  bool is_own = false;  // this rank was asked itself
  bool is_wanted() const { return signal != 0; }
};

// Collective. A drain or stop of the agent counts as SIGTERM.
StopWish agree_on_stop(comm::Comm& comm, const AgentLink& agent);

// A rank that stopped for another's sake waits for its own signal, so that its agent hears of the
// membership change before it sees its worker exit. Bounded.
void await_own_signal(const AgentLink& agent);

}  // namespace lrun::loop
