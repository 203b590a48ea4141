#include "agent/keeper.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/keeper_loop.h"
#include "agent/keeper_messages.h"
#include "agent/process_tree.h"

namespace lrun::agent {
namespace {

// Two forks; a machine that needs longer cannot start workers either.
constexpr int kReadyLimitMs = 10'000;
constexpr int kIdleLookMs = 60'000;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A closed standard stream would be taken by the next descriptor that is opened.
void open_standard_streams() {
  for (int descriptor = ::open("/dev/null", O_RDWR); descriptor >= 0;) {
    if (descriptor > STDERR_FILENO) {
      ::close(descriptor);
      return;
    }
    descriptor = ::dup(descriptor);
  }
}

// Keeps the standard streams and `kept`, closes all else that came with the fork.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int descriptor : kept) {
    const auto place = static_cast<unsigned>(descriptor);
    if (place > first) ::close_range(first, place - 1, 0);
    first = std::max(first, place + 1);
  }
  ::close_range(first, std::numeric_limits<int>::max(), 0);
}

// What workers start with: handlers and masks of this process never reach them.
class StartingSignals {
 public:
  StartingSignals() {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
        ignored_.push_back(number);
      }
    }
  }
  void restore() const {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    for (const int number : ignored_) ::signal(number, SIG_IGN);
  }

 private:
  std::vector<int> ignored_;
};

// Those of the first call: a later keeper's workers start like those of the first.
const StartingSignals& starting_signals() {
  static const StartingSignals first;
  return first;
}

void begin_process(const char* name, std::initializer_list<int> kept) {
  starting_signals().restore();
  ::setsid();
  ::prctl(PR_SET_NAME, name);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  close_all_but(kept);
}

// Reaps whatever has ended; true once `pid` is among it.
bool reap_until_seen(pid_t pid) {
  bool is_seen = false;
  for (pid_t ended = 0; (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0;) is_seen |= ended == pid;
  return is_seen;
}

// Waits for the keeper's end, then sees to the rest: true when nothing is left. The agent's end
// gives the keeper a limit for its own work.
bool guard(pid_t keeper, const Fd& agent_life, const Fd& signals) {
  std::vector<pollfd> watched{{signals.get(), POLLIN, 0}, {agent_life.get(), POLLIN, 0}};
  const auto now = [] { return std::chrono::steady_clock::now(); };
  Instant deadline = Instant::max();
  while (!reap_until_seen(keeper) && now() < deadline) {
    const bool is_agent_gone = deadline != Instant::max();
    const int timeout = is_agent_gone ? static_cast<int>(kTreeLookInterval.count()) : kIdleLookMs;
    ::poll(watched.data(), is_agent_gone ? 1 : 2, timeout);
    if (!is_agent_gone && watched[1].revents != 0) deadline = now() + kTreeEndLimit;
  }
  return end_descendants(kTreeEndLimit);
}

[[noreturn]] void become_guard(Fd connection, Fd agent_life) {
  begin_process("lrun-guard", {connection.get(), agent_life.get()});
  const Fd signals = block_signals();
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    begin_process("lrun-keeper", {connection.get()});
    run_keeper(std::move(connection));
    ::_exit(0);
  }
  connection.reset();
  // Held open, the launcher's streams would keep its readers waiting.
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) ::close(stream);
  open_standard_streams();
  ::_exit(keeper > 0 && guard(keeper, agent_life, signals) ? 0 : 1);
}

// So that no signal meets the new process before it leads its own session.
pid_t fork_with_signals_blocked() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid != 0) ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return pid;
}

std::vector<int> own_children() {
  std::vector<int> children;
  for (const Process& process : descendants_of(::getpid())) {
    if (process.parent == ::getpid()) children.push_back(process.pid);
  }
  return children;
}

// The first report: its process works. Throws when there is none in time.
pid_t wait_until_ready(const Fd& connection) {
  pollfd watched{connection.get(), POLLIN, 0};
  Report report;
  if (::poll(&watched, 1, kReadyLimitMs) != 1 ||
      receive_report(connection, &report) != Received::Message) {
    throw std::system_error(ECHILD, std::generic_category(), "the keeper did not start");
  }
  return report.pid;
}

}  // namespace

Keeper Keeper::start() {
  starting_signals();
  open_standard_streams();
  int packets[2];
  int life[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets) != 0)
    throw_errno("socketpair");
  Fd connection(packets[0]);
  Fd keepers_end(packets[1]);
  if (::pipe2(life, O_CLOEXEC) != 0) throw_errno("pipe2");
  Fd agent_life(life[0]);
  Fd life_end(life[1]);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw_errno("PR_SET_CHILD_SUBREAPER");
  std::vector<int> earlier_children = own_children();
  const pid_t guard_pid = fork_with_signals_blocked();
  if (guard_pid < 0) throw_errno("fork");
  if (guard_pid == 0) {
    connection.reset();
    life_end.reset();
    become_guard(std::move(keepers_end), std::move(agent_life));
  }
  keepers_end.reset();
  Keeper keeper(std::move(connection), std::move(life_end), guard_pid);
  keeper.earlier_children_ = std::move(earlier_children);
  keeper.keeper_pid_ = wait_until_ready(keeper.connection_);
  ::fcntl(keeper.connection_.get(), F_SETFL, O_NONBLOCK);
  return keeper;
}

Keeper::Keeper(Keeper&& other) noexcept
    : connection_(std::move(other.connection_)),
      life_(std::move(other.life_)),
      guard_pid_(std::exchange(other.guard_pid_, -1)),
      keeper_pid_(std::exchange(other.keeper_pid_, -1)),
      earlier_children_(std::move(other.earlier_children_)) {}

Keeper::~Keeper() { end_tree(); }

bool Keeper::end_tree() {
  connection_.reset();
  life_.reset();
  if (guard_pid_ < 0) return true;
  const Instant deadline = std::chrono::steady_clock::now() + 2 * kTreeEndLimit;
  int status = -1;
  pid_t ended = 0;
  while ((ended = ::waitpid(guard_pid_, &status, WNOHANG)) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, static_cast<int>(kTreeLookInterval.count()));
  }
  const bool has_guard_done_it =
      ended == guard_pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  guard_pid_ = -1;
  return has_guard_done_it || end_descendants(kTreeEndLimit, earlier_children_);
}

}  // namespace lrun::agent
