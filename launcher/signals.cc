#include "launcher/signals.h"

#include <csignal>

#include "base/log.h"

namespace lrun::launcher {
namespace {

bool is_ignored(int signal_number) {
  struct sigaction current {};
  return sigaction(signal_number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(boost::asio::io_context& loop, std::function<void(int)> on_stop)
    : set_(loop), on_stop_(std::move(on_stop)) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (!is_ignored(number)) set_.add(number);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a closed console is no reason to end a job
  wait();
}

void Signals::wait() {
  set_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    if (number == SIGUSR1 || number == SIGUSR2) {
      log::warn("signal_ignored", {{"signal", number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2"}});
    } else {
      on_stop_(number);
    }
    wait();
  });
}

}  // namespace lrun::launcher
