#include "launcher/local_nodes.h"

#include <prometheus/registry.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "base/log.h"
#include "launcher/exit_codes.h"
#include "launcher/finish_report.h"
#include "launcher/runtime_folder.h"
#include "launcher/service_process.h"

namespace lrun::launcher {
namespace {

// An agent that was killed comes back, as a scheduler would bring it back; not for ever.
constexpr int kStartsMax = 100;
constexpr Duration kRestartDelay = std::chrono::milliseconds(50);

// Nothing but system calls between fork and exec: gRPC's threads may hold any lock.
pid_t start_process(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  // The terminal's signals reach this parent alone, which forwards them once.
  ::setpgid(0, 0);
  // If the parent is killed the agent dies too, and its keeper ends its workers.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitUsage);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(kExitUsage);
}

}  // namespace

LocalNodes::LocalNodes(const RunCommand& command, Place place)
    : command_(command),
      place_(std::move(place)),
      registry_(std::make_shared<prometheus::Registry>()) {
  host_ = std::make_unique<ServiceHost>(loop_, *registry_, command_.options, place_, false);
  host_->listen(place_, std::nullopt, false);
  unlock_file(place_.discovery_lock);
  metrics_server_ = serve_service_metrics(loop_, command_.options, *registry_, *host_);
  signals_ = std::make_unique<Signals>(loop_, [this](int number) { on_signal(number); });
  nodes_.resize(static_cast<std::size_t>(place_.nodes.max));
}

LocalNodes::~LocalNodes() {
  for (Node& node : nodes_) {
    if (node.pid <= 0) continue;
    ::kill(node.pid, SIGKILL);
    ::waitpid(node.pid, nullptr, 0);
  }
}

std::vector<std::string> LocalNodes::agent_words() const {
  std::vector<std::string> words{"lrun", "agent"};
  for (const std::string& word : command_.options.repeated) {
    const bool is_own = word.starts_with("--standalone") || word.starts_with("--rdzv-") ||
                        word.starts_with("--metrics-port") || word.starts_with("--node-rank");
    if (!is_own) words.push_back(word);
  }
  // Variables of the parent would name another job, so everything is said.
  words.insert(words.end(), {"--standalone=0", "--rdzv-endpoint=unix:" + place_.socket,
                             "--rdzv-id=" + place_.run_id});
  if (command_.options.metrics_port) words.emplace_back("--metrics-port=0");
  words.emplace_back("--");
  words.insert(words.end(), command_.program.begin(), command_.program.end());
  return words;
}

void LocalNodes::start(Node& node) {
  node.pid = start_process(agent_words());
  if (node.pid < 0)
    throw std::runtime_error(std::string("cannot start an agent: ") + std::strerror(errno));
  ++node.starts;
  watch(node);
}

void LocalNodes::watch(Node& node) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, node.pid, 0));
  if (descriptor < 0) throw std::runtime_error(std::string("pidfd_open: ") + std::strerror(errno));
  node.ended = std::make_unique<boost::asio::posix::stream_descriptor>(loop_, descriptor);
  node.ended->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, &node](boost::system::error_code error) {
                           if (error) return;
                           int status = 0;
                           ::waitpid(node.pid, &status, 0);
                           node.pid = -1;
                           on_end(node, status);
                         });
}

void LocalNodes::on_end(Node& node, int status) {
  const bool was_killed = WIFSIGNALED(status);
  if (!was_killed) worst_exit_code_ = std::max(worst_exit_code_, WEXITSTATUS(status));
  if (!was_killed || signal_ || host_->closed() || node.starts >= kStartsMax) return;
  log::warn("agent_killed", {{"signal", WTERMSIG(status)}, {"starts", node.starts}});
  node.is_returning = true;
  node.restart_timer = std::make_unique<boost::asio::steady_timer>(loop_, kRestartDelay);
  node.restart_timer->async_wait([this, &node](boost::system::error_code error) {
    node.is_returning = false;
    if (!error && !signal_ && !host_->closed()) start(node);
  });
}

void LocalNodes::on_signal(int signal_number) {
  signal_ = signal_number;
  for (const Node& node : nodes_) {
    if (node.pid > 0) ::kill(node.pid, signal_number);
  }
}

bool LocalNodes::is_over() const {
  return std::none_of(nodes_.begin(), nodes_.end(),
                      [](const Node& node) { return node.pid > 0 || node.is_returning; });
}

int LocalNodes::run() {
  for (Node& node : nodes_) start(node);
  while (!is_over() && loop_.run_one() > 0) {
  }
  if (signal_) return kExitSignalBase + *signal_;
  return host_->closed() ? exit_code_of(host_->closed()->outcome) : worst_exit_code_;
}

}  // namespace lrun::launcher
