#include "trainer/loop/stop_wish.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <span>

#include "trainer/loop/signals.h"

namespace lrun::loop {
namespace {

// A drained node leaves the group within a heartbeat; then the other agents stop their workers.
constexpr Duration kOwnSignalDeadline = std::chrono::seconds(10);
constexpr int kLookPeriodMs = 20;

int own_signal(const AgentLink& agent) {
  const int signal = stop_signal();
  return signal != 0 ? signal : (agent.wants_stop() ? SIGTERM : 0);
}

}  // namespace

StopWish agree_on_stop(comm::Comm& comm, const AgentLink& agent) {
  const int own = own_signal(agent);
  StopWish wish{.signal = own, .is_own = own != 0};
  if (comm.world_size() == 1) return wish;
  const auto byte = static_cast<std::byte>(own);
  for (const auto& bytes : comm.all_gather_bytes(std::span(&byte, 1))) {
    wish.signal = std::max(wish.signal, static_cast<int>(bytes.at(0)));
  }
  return wish;
}

void await_own_signal(const AgentLink& agent) {
  const Instant deadline = std::chrono::steady_clock::now() + kOwnSignalDeadline;
  while (own_signal(agent) == 0 && std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, kLookPeriodMs);  // a signal ends it early
  }
}

}  // namespace lrun::loop
