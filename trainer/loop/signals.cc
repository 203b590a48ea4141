#include "trainer/loop/signals.h"

#include <atomic>
#include <csignal>

namespace lrun::loop {
namespace {

std::atomic<int> g_stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free,
              "only such may be written by a signal handler");

void remember(int signal) { g_stop_signal.store(signal); }

}  // namespace

void watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int stop_signal() { return g_stop_signal.load(); }

}  // namespace lrun::loop
