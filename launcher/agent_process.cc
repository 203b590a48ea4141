#include "launcher/agent_process.h"

#include <prometheus/registry.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "agent/run_folder.h"
#include "agent/stream_choice.h"
#include "base/log.h"
#include "launcher/addresses.h"
#include "launcher/exit_codes.h"
#include "launcher/finish_report.h"
#include "rendezvous/local_link.h"

namespace lrun::launcher {
namespace {

// The service refuses a late join with the names of those who are missing; only if it says nothing
// for so long beyond that does the agent give up by itself.
constexpr Duration kWithdrawal = std::chrono::seconds(5);
// People can wait for `lrun status`, workers should not wait for its socket.
constexpr Duration kSocketDelay = std::chrono::milliseconds(200);
constexpr Duration kLockPoll = std::chrono::milliseconds(20);
constexpr Duration kLockLimit = std::chrono::seconds(2);
// Under Slurm SIGKILL follows SIGTERM after 30 s, so workers get less.
constexpr Duration kShutdownTimeout = std::chrono::seconds(30);
constexpr Duration kShutdownTimeoutInSlurm = std::chrono::seconds(25);

agent::StreamChoice stream_choice(std::string_view option, const std::string& text) {
  auto parsed = agent::parse_stream_choice(option, text);
  if (auto* error = std::get_if<agent::UsageError>(&parsed))
    throw std::runtime_error(error->sentence);
  return std::get<agent::StreamChoice>(std::move(parsed));
}

std::string make_folder(const RunOptions& options, const std::string& run_id) {
  const auto wanted = options.log_dir.empty() ? std::nullopt : std::optional(options.log_dir);
  auto made = agent::make_run_folder(wanted, run_id);
  if (auto* error = std::get_if<agent::UsageError>(&made))
    throw std::runtime_error(error->sentence);
  return std::get<std::string>(std::move(made));
}

Incarnation new_incarnation() {
  std::random_device source;
  return {(std::uint64_t{source()} << 32) | source()};
}

Duration shutdown_timeout(const RunOptions& options, const Environment& environment) {
  if (options.shutdown_timeout) return *options.shutdown_timeout;
  return environment.contains("SLURM_STEP_ID") ? kShutdownTimeoutInSlurm : kShutdownTimeout;
}

}  // namespace

AgentProcess::AgentProcess(const RunCommand& command, Place place, std::vector<std::string> program,
                           const Environment& environment)
    : command_(command),
      place_(std::move(place)),
      node_name_(claim_node_name(
          runtime_folder(),
          command.options.node_name.empty() ? host_name() : command.options.node_name,
          place_.run_id)),
      credentials_(credentials_for(command.options, place_)),
      keeper_(agent::Keeper::start()),
      registry_(std::make_shared<prometheus::Registry>()) {
  log::set_node(node_name_.name);
  open_service();
  serve_metrics();
  make_agent(std::move(program), environment);
  signals_ = std::make_unique<Signals>(loop_, [this](int number) { agent_->signal(number); });
}

AgentProcess::~AgentProcess() = default;

void AgentProcess::open_service() {
  if (place_.serves) {
    host_ = std::make_unique<ServiceHost>(loop_, *registry_, command_.options, place_, false);
    const bool is_open = !place_.socket_is_needed ||
                         host_->listen(place_, credentials_, command_.options.insecure_network);
    if (!is_open) host_.reset();
  }
  if (host_ != nullptr) {
    link_ = std::make_unique<rendezvous::LocalLink>(host_->service());
    return;
  }
  auto client = std::make_unique<rendezvous::Client>(
      loop_, rendezvous::Client::Options{.endpoints = place_.join,
                                         .run_id = place_.run_id,
                                         .credentials = credentials_,
                                         .insecure_network = command_.options.insecure_network});
  client_ = client.get();
  link_ = std::move(client);
}

// Printed once everything that can be wrong has been checked.
void AgentProcess::announce() const {
  if (place_.announces && host_ != nullptr) announce_join_line();
  if (!run_folder_.empty()) {
    std::fprintf(stderr, "lrun: logs of node %s in %s\n", node_name_.name.c_str(),
                 run_folder_.c_str());
  }
  if (metrics_server_ != nullptr) {
    std::fprintf(stderr, "lrun: metrics of node %s at http://%s:%d/metrics\n",
                 node_name_.name.c_str(), command_.options.metrics_address.c_str(),
                 metrics_server_->port());
  }
}

// The line for other nodes is complete: what was given here, and what they cannot know.
void AgentProcess::announce_join_line() const {
  const auto endpoint = host_->endpoint();
  if (!endpoint) return;
  rendezvous::Endpoint reachable = *endpoint;
  reachable.host = place_.address;
  std::string line = "lrun";
  for (const std::string& word : command_.options.repeated) {
    const bool is_own = word.starts_with("--rdzv-") || word.starts_with("--metrics-port") ||
                        word.starts_with("--node-") || word.starts_with("--local-addr");
    if (!is_own) line += " " + shell_quoted(word);
  }
  line += " --rdzv-endpoint=" + to_string(reachable) + " --rdzv-id=" + shell_quoted(place_.run_id);
  for (const std::string& word : command_.program) line += " " + shell_quoted(word);
  std::fprintf(stderr,
               "lrun: this node serves job %s for %d to %d nodes; on another node type:\n  %s\n",
               place_.run_id.c_str(), place_.nodes.min, place_.nodes.max, line.c_str());
}

void AgentProcess::make_agent(std::vector<std::string> program, const Environment& environment) {
  const RunOptions& options = command_.options;
  agent::AgentOptions made;
  made.output.redirects = stream_choice("--redirects", options.redirects);
  made.output.tee = stream_choice("--tee", options.tee);
  run_folder_ = make_folder(options, place_.run_id);
  made.output.run_folder = run_folder_;
  made.output.host = host_name();
  agent::Config& config = made.config;
  config.run_id = place_.run_id;
  config.facts = {.node = {node_name_.name},
                  .incarnation = new_incarnation(),
                  .slots = place_.slots,
                  .role = options.role,
                  .address = place_.address,
                  .master_port = 0,
                  .fixed_rank = place_.fixed_rank,
                  .labels = options.node_labels};
  config.max_restarts = options.max_restarts;
  config.kill_grace = shutdown_timeout(options, environment);
  config.heartbeat = options.heartbeat;
  config.lease = options.lease;
  config.stall_timeout = options.stall_timeout;
  config.unreachable_timeout = options.join_timeout + kWithdrawal;
  config.log_folder = made.output.run_folder;
  made.command = std::move(program);
  made.program = command_.program.front();
  made.base_environment = environment;
  agent_metrics_ =
      std::make_unique<agent::Metrics>(*registry_, place_.slots, std::chrono::steady_clock::now());
  agent_ = std::make_unique<agent::Agent>(
      loop_, std::move(made), std::move(keeper_), *link_, agent_metrics_.get(),
      [this](const agent::Finish& finish) { on_finish(finish); });
}

void AgentProcess::serve_metrics() {
  const RunOptions& options = command_.options;
  if (!options.metrics_port) return;
  metrics_server_ = std::make_unique<MetricsServer>(
      loop_,
      MetricsServer::Options{.address = options.metrics_address,
                             .port = *options.metrics_port,
                             .accepted_hosts = {host_name(), reachable_address()}},
      *registry_, [this] { update_metrics(); }, [this] { return health(); },
      [this] { return readiness(); });
}

int AgentProcess::run() {
  announce();
  agent_->start();
  open_socket_later();
  release_discovery_lock_when_known();
  while (!finish_ && loop_.run_one() > 0) {
  }
  if (!finish_) return kExitRendezvous;
  socket_timer_.cancel();
  lock_timer_.cancel();
  if (host_ != nullptr) {
    bool is_over = false;
    host_->linger(NodeId{node_name_.name}, [&is_over] { is_over = true; });
    while (!is_over && loop_.run_one() > 0) {
    }
  }
  print_finish(*finish_, node_name_.name, agent_->report());
  return exit_code_of(*finish_);
}

void AgentProcess::open_socket_later() {
  if (host_ == nullptr || place_.socket_is_needed) return;
  socket_timer_.expires_after(kSocketDelay);
  socket_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    try {
      host_->listen(place_, credentials_, command_.options.insecure_network);
    } catch (const std::exception& failure) {
      log::warn("status_socket_unavailable", {{"reason", failure.what()}});
    }
    unlock_file(place_.discovery_lock);
  });
}

// A third terminal that looks before this node is known would join a job that is already full.
void AgentProcess::release_discovery_lock_when_known() {
  const bool opens_socket_later = place_.serves && !place_.socket_is_needed;
  if (!place_.discovery_lock.is_open() || opens_socket_later) return;
  lock_waited_ += kLockPoll;
  if (lock_waited_ > kLockLimit) return unlock_file(place_.discovery_lock);
  lock_timer_.expires_after(kLockPoll);
  lock_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) ask_whether_known();
  });
}

void AgentProcess::ask_whether_known() {
  if (host_ != nullptr) return release_discovery_lock_if_in(host_->service().status());
  client_->get_status([this](rendezvous::Answer<rendezvous::Client::StatusAnswer> answer) {
    const auto* reply = std::get_if<rendezvous::Client::StatusAnswer>(&answer);
    const auto* status = reply == nullptr ? nullptr : std::get_if<rendezvous::Status>(reply);
    release_discovery_lock_if_in(status == nullptr ? rendezvous::Status{} : *status);
  });
}

void AgentProcess::release_discovery_lock_if_in(const rendezvous::Status& status) {
  const bool is_known = std::any_of(status.nodes.begin(), status.nodes.end(),
                                    [this](const rendezvous::NodeStatus& node) {
                                      return node.facts.node.value == node_name_.name;
                                    });
  if (is_known) return unlock_file(place_.discovery_lock);
  release_discovery_lock_when_known();
}

void AgentProcess::on_finish(const agent::Finish& finish) { finish_ = finish; }

void AgentProcess::update_metrics() {
  agent_->update_metrics();
  if (host_ != nullptr) host_->update_metrics();
}

Health AgentProcess::health() const {
  return {true, "the agent of node " + node_name_.name + " runs"};
}

Health AgentProcess::readiness() const {
  const auto& assignment = agent_->assignment();
  if (!assignment) return {false, "no generation yet: waiting for other nodes"};
  return {true, "generation " + to_string(assignment->generation) + ", group rank " +
                    std::to_string(assignment->group_rank.value)};
}

}  // namespace lrun::launcher
