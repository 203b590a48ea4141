#include "agent/keeper_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "agent/keeper_messages.h"
#include "agent/process_tree.h"
#include "agent/worker_child.h"

namespace lrun::agent {
namespace {

// Nothing depends on it: a wait just has an end.
constexpr int kIdleLookMs = 60'000;
// After a worker's leader has ended: how long its other processes may take to die of SIGKILL.
constexpr Duration kLeftoverLimit = std::chrono::seconds(5);

enum class ChildState { Starting, Running, Ending, NeverRan };

struct Child {
  ChildState state = ChildState::Starting;
  pid_t pid = 0;
  Fd exec_result;
  std::vector<std::string> marks;
  Report exit;           // while Ending
  Instant give_up_at{};  // while Ending
  bool is_alive() const { return state != ChildState::Ending; }
};

class KeeperLoop {
 public:
  KeeperLoop(Fd connection, Fd signals)
      : connection_(std::move(connection)), signals_(std::move(signals)) {}

  void run() {
    send_report(connection_, {.kind = ReportKind::Ready, .pid = ::getpid()});
    while (!is_agent_gone_) {
      wait();
      for (auto& [worker, child] : children_) read_exec_result(worker, child);
      reap();
      take_orders();
      end_leftovers();
    }
    for (const auto& [worker, child] : children_) ::kill(-child.pid, SIGKILL);
    end_descendants(kTreeEndLimit);
  }

 private:
  void wait() {
    std::vector<pollfd> watched{{connection_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    bool is_ending = false;
    for (const auto& [worker, child] : children_) {
      if (child.exec_result.is_open()) watched.push_back({child.exec_result.get(), POLLIN, 0});
      is_ending |= child.state == ChildState::Ending;
    }
    const int timeout = is_ending ? static_cast<int>(kTreeLookInterval.count()) : kIdleLookMs;
    ::poll(watched.data(), watched.size(), timeout);
    signalfd_siginfo seen;
    while (::read(signals_.get(), &seen, sizeof(seen)) > 0) {
    }
  }

  void read_exec_result(WorkerSerial worker, Child& child) {
    if (!child.exec_result.is_open()) return;
    int error = 0;
    const ssize_t got = ::read(child.exec_result.get(), &error, sizeof(error));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    child.exec_result.reset();
    if (got == sizeof(error)) {
      child.state = ChildState::NeverRan;
      report({.kind = ReportKind::SpawnFailed, .worker = worker, .error = error});
    } else {
      child.state = ChildState::Running;
      report({.kind = ReportKind::Spawned, .worker = worker, .pid = child.pid});
    }
  }

  void reap() {
    siginfo_t ended{};
    while (ended.si_pid = 0,
           ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG) == 0 && ended.si_pid != 0) {
      const auto found = std::find_if(children_.begin(), children_.end(), [&](const auto& entry) {
        return entry.second.pid == ended.si_pid && entry.second.is_alive();
      });
      if (found == children_.end()) continue;  // a descendant that was re-parented to us
      read_exec_result(found->first, found->second);
      if (found->second.state == ChildState::NeverRan) {
        children_.erase(found);
      } else {
        begin_ending(found->first, found->second, ended);
      }
    }
  }

  void begin_ending(WorkerSerial worker, Child& child, const siginfo_t& ended) {
    child.state = ChildState::Ending;
    child.give_up_at = std::chrono::steady_clock::now() + kLeftoverLimit;
    child.exit = {.kind = ReportKind::Exited,
                  .worker = worker,
                  .pid = child.pid,
                  .code = ended.si_status,
                  .by_signal = ended.si_code != CLD_EXITED,
                  .core_dumped = ended.si_code == CLD_DUMPED};
  }

  void take_orders() {
    while (true) {
      ReceivedOrder received;
      switch (receive_order(connection_, &received)) {
        case Received::Nothing:
          return;
        case Received::PeerGone:
          is_agent_gone_ = true;
          return;
        case Received::Message:
          obey(received);
          break;
      }
    }
  }

  void obey(const ReceivedOrder& received) {
    const Order& order = received.order;
    switch (order.kind) {
      case OrderKind::Spawn:
        spawn(order.worker, received.descriptors);
        return;
      case OrderKind::Signal:
        signal(order.worker, order.signal_number);
        return;
    }
  }

  void spawn(WorkerSerial worker, const SpawnDescriptors& descriptors) {
    std::optional<SpawnPayload> payload = from_memory_file(descriptors.payload);
    errno = EINVAL;
    StartedChild started = payload ? start_child(*payload, descriptors) : StartedChild{};
    if (started.pid < 0) {
      report({.kind = ReportKind::SpawnFailed, .worker = worker, .error = errno});
      return;
    }
    Child& child = children_[worker];
    child.pid = started.pid;
    child.exec_result = std::move(started.exec_result);
    child.marks = std::move(payload->marks);
  }

  void signal(WorkerSerial worker, int signal_number) {
    const auto found = children_.find(worker);
    if (found == children_.end() || !found->second.is_alive()) return;
    // A child that has just been forked does not lead its group yet.
    if (::kill(-found->second.pid, signal_number) != 0) ::kill(found->second.pid, signal_number);
  }

  // Reports each ended worker whose last process is gone, and kills those that are not.
  void end_leftovers() {
    const bool is_any_ending =
        std::any_of(children_.begin(), children_.end(),
                    [](const auto& entry) { return entry.second.state == ChildState::Ending; });
    if (!is_any_ending) return;
    const std::vector<Process> leftovers = find_leftovers();
    for (const Process& process : leftovers) ::kill(process.pid, SIGKILL);
    const Instant now = std::chrono::steady_clock::now();
    for (auto entry = children_.begin(); entry != children_.end();) {
      Child& child = entry->second;
      const bool is_over =
          child.state == ChildState::Ending && (leftovers.empty() || now >= child.give_up_at);
      if (!is_over) {
        ++entry;
        continue;
      }
      child.exit.left_behind = static_cast<std::uint32_t>(leftovers.size());
      report(child.exit);
      entry = children_.erase(entry);
    }
  }

  // Descendants that no living worker accounts for: not below one, not in its session or group, not
  // started with its environment. What daemonised itself from a living worker is spared.
  std::vector<Process> find_leftovers() const {
    std::vector<pid_t> alive;
    for (const auto& [worker, child] : children_) {
      if (child.is_alive()) alive.push_back(child.pid);
    }
    std::vector<Process> leftovers;
    std::vector<pid_t> spared;
    for (const Process& process : descendants_of(::getpid(), alive)) {
      const bool is_below_spared =
          std::find(spared.begin(), spared.end(), process.parent) != spared.end();
      if (is_below_spared || is_of_living_worker(process)) {
        spared.push_back(process.pid);
      } else if (!process.is_zombie) {
        leftovers.push_back(process);
      }
    }
    return leftovers;
  }

  bool is_of_living_worker(const Process& process) const {
    return std::any_of(children_.begin(), children_.end(), [&](const auto& entry) {
      const Child& child = entry.second;
      return child.is_alive() && (process.session == child.pid || process.group == child.pid ||
                                  has_environment(process.pid, child.marks));
    });
  }

  void report(const Report& report) {
    if (!send_report(connection_, report)) is_agent_gone_ = true;
  }

  Fd connection_;
  Fd signals_;
  std::map<WorkerSerial, Child> children_;
  bool is_agent_gone_ = false;
};

}  // namespace

Fd block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Ignored at start, it would make the kernel reap children unseen.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  return Fd(::signalfd(-1, &child_ended, SFD_CLOEXEC | SFD_NONBLOCK));
}

void run_keeper(Fd connection) {
  Fd signals = block_signals();
  KeeperLoop(std::move(connection), std::move(signals)).run();
}

}  // namespace lrun::agent
