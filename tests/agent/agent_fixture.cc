#include "tests/agent/agent_fixture.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <variant>

#include "agent/run_folder.h"

namespace lrun::agent::testing {
namespace {

constexpr std::chrono::milliseconds kLoopSlice{5};

Fd new_file(const std::filesystem::path& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open()) throw std::runtime_error("cannot open " + path.string());
  return file;
}

bool has_labels(const prometheus::ClientMetric& metric, const std::vector<std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const std::string& wanted) {
    return std::any_of(metric.label.begin(), metric.label.end(),
                       [&](const auto& label) { return label.name + "=" + label.value == wanted; });
  });
}

}  // namespace

AgentRun::AgentRun(std::vector<std::string> command)
    : stdout_(new_file(folder_.path() / "console_stdout")),
      stderr_(new_file(folder_.path() / "console_stderr")) {
  options.command = std::move(command);
  options.program = options.command.front();
  options.config.facts.node = {"testnode"};
  options.config.facts.incarnation = {1};
  options.config.kill_grace = kTestLimit;
  options.config.run_id = "job7";
  options.base_environment = {{"PATH", "/usr/bin:/bin"}, {mark_.name(), mark_.value()}};
  auto made = make_run_folder(folder_.path() / "logs", options.config.run_id);
  options.output.run_folder = std::get<std::string>(made);
  options.config.log_folder = options.output.run_folder;
  options.output.tee.others = 3;
  options.output.host = "testhost";
  options.output.console_stdout = stdout_.get();
  options.output.console_stderr = stderr_.get();
}

AgentRun::~AgentRun() = default;

void AgentRun::start() {
  rendezvous::Service::Options service;
  service.config.run_id = options.config.run_id;
  service.config.max_restarts = options.config.max_restarts;
  service.config.kill_grace = options.config.kill_grace;
  service_ = std::make_unique<rendezvous::Service>(loop_, service, [](const auto&) {});
  link_ = std::make_unique<rendezvous::LocalLink>(*service_);
  started_at_ = std::chrono::steady_clock::now();
  metrics_ = std::make_unique<Metrics>(registry_, options.config.facts.slots, started_at_);
  Keeper keeper = Keeper::start();
  keeper_pid_ = keeper.keeper_pid();
  agent_ = std::make_unique<Agent>(loop_, options, std::move(keeper), *link_, metrics_.get(),
                                   [this](const Finish& finish) { finish_ = finish; });
  agent_->start();
}

bool AgentRun::run_until(const std::function<bool()>& is_true) {
  const auto deadline = std::chrono::steady_clock::now() + kTestLimit;
  while (!is_true() && !finish_ && std::chrono::steady_clock::now() < deadline) {
    loop_.run_for(kLoopSlice);
  }
  return is_true();
}

std::optional<Finish> AgentRun::run() {
  run_until([this] { return finish_.has_value(); });
  return finish_;
}

std::string AgentRun::console_stdout() const {
  return read_file(folder_.path() / "console_stdout");
}
std::string AgentRun::console_stderr() const {
  return read_file(folder_.path() / "console_stderr");
}

std::string AgentRun::log(const std::string& path) const {
  return read_file(options.output.run_folder + "/" + path);
}

bool AgentRun::has_log(const std::string& path) const {
  return std::filesystem::exists(options.output.run_folder + "/" + path);
}

double AgentRun::metric(const std::string& name, const std::vector<std::string>& labels) {
  for (const auto& family : registry_.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      if (has_labels(metric, labels)) return metric.counter.value + metric.gauge.value;
    }
  }
  return -1;
}

double AgentRun::metric_sum(const std::string& name) {
  double sum = 0;
  for (const auto& family : registry_.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) sum += metric.counter.value;
  }
  return sum;
}

}  // namespace lrun::agent::testing
