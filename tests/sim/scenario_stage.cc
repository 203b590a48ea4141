#include "tests/sim/scenario_stage.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "tests/sim/describe.h"
#include "tests/sim/scenario_words.h"

namespace lrun::sim {
namespace {

// Commands show up in the world's log too; the scenario has them already.
bool is_echo(const std::string& line) { return line.find("] >: ") != std::string::npos; }

// "[   1.250123] a: …" to "[   1.250] a: …": microseconds tell a reader nothing.
std::string in_milliseconds(const std::string& line) {
  constexpr std::size_t kDigitsCut = 3;
  const std::size_t bracket = line.find(']');
  if (bracket == std::string::npos || bracket < kDigitsCut) return line;
  return line.substr(0, bracket - kDigitsCut) + line.substr(bracket);
}

// The world answers false for nodes and workers that are not there.
void require(bool obeyed, const std::string& what) {
  if (!obeyed) throw ScenarioError(what + " is not there, or not in a state for this");
}

void read_duration(const ScenarioCommand& command, const std::string& key, Duration& target) {
  if (const auto text = option_of(command, key)) target = duration_of(*text);
}
void read_share(const ScenarioCommand& command, const std::string& key, double& target) {
  if (const auto text = option_of(command, key)) target = share_of(*text);
}
void read_number(const ScenarioCommand& command, const std::string& key, int& target) {
  if (const auto text = option_of(command, key)) target = number_of(*text);
}

std::string to_string(rendezvous::Role role) {
  switch (role) {
    case rendezvous::Role::Waiting:
      return "waiting";
    case rendezvous::Role::Participant:
      return "participant";
    case rendezvous::Role::Spare:
      return "spare";
    case rendezvous::Role::Finished:
      return "finished";
  }
  return "unknown";
}

std::string describe(const rendezvous::NodeStatus& node) {
  std::string text = node.facts.node.value + ": " + to_string(node.role);
  const bool is_seated =
      node.role == rendezvous::Role::Participant || node.role == rendezvous::Role::Finished;
  if (is_seated && node.assignment) {
    text += ", group rank " + std::to_string(node.assignment->group_rank.value) +
            ", global ranks from " + std::to_string(node.assignment->first_global_rank.value);
  }
  if (node.draining) text += ", draining";
  return text;
}

}  // namespace

World& Stage::world() {
  if (!world_) world_.emplace(options_);
  return *world_;
}

std::vector<std::string> Stage::take_new_lines() {
  std::vector<std::string> fresh;
  if (world_) {
    for (; lines_taken_ < world_->log().size(); ++lines_taken_) {
      const std::string& line = world_->log()[lines_taken_];
      if (!is_echo(line)) fresh.push_back(in_milliseconds(line));
    }
  }
  fresh.insert(fresh.end(), said_.begin(), said_.end());
  said_.clear();
  return fresh;
}

std::vector<std::string> Stage::take_new_violations() {
  std::vector<std::string> fresh;
  if (!world_) return fresh;
  for (; violations_taken_ < world_->violations().size(); ++violations_taken_) {
    fresh.push_back(world_->violations()[violations_taken_]);
  }
  return fresh;
}

void Stage::set_up_job(const ScenarioCommand& command) {
  if (world_) throw ScenarioError("'job' comes before everything else");
  accept_options(command, {"nodes", "restarts", "last_call", "kill_grace", "heartbeat", "lease",
                           "join_timeout", "grow_cooldown", "stall_timeout", "seed"});
  rendezvous::Config& service = options_.service;
  if (const auto nodes = option_of(command, "nodes")) {
    std::tie(service.min_nodes, service.max_nodes) = range_of(*nodes);
  }
  read_number(command, "restarts", service.max_restarts);
  read_duration(command, "last_call", service.last_call);
  read_duration(command, "kill_grace", service.kill_grace);
  read_duration(command, "heartbeat", service.heartbeat);
  read_duration(command, "lease", service.lease);
  read_duration(command, "join_timeout", service.join_timeout);
  read_duration(command, "grow_cooldown", service.grow_cooldown);
  options_.agent.max_restarts = service.max_restarts;
  options_.agent.kill_grace = service.kill_grace;
  options_.agent.heartbeat = service.heartbeat;
  options_.agent.lease = service.lease;
  if (const auto timeout = option_of(command, "stall_timeout")) {
    options_.agent.stall_timeout = duration_of(*timeout);
  }
  if (const auto seed = option_of(command, "seed")) {
    options_.seed = static_cast<std::uint64_t>(number_of(*seed));
  }
}

void Stage::set_up_workers(const ScenarioCommand& command) {
  if (world_) throw ScenarioError("'workers' comes before the first node joins");
  accept_options(command, {"steps", "step", "start_up"});
  WorkerHabits& habits = options_.habits;
  for (const std::string& word : command.words) {
    if (word == "live") {
      habits.is_live = true;
    } else if (word == "silent") {
      habits.reports = false;
    } else if (word == "stubborn") {
      habits.ignores_polite_signals = true;
    } else if (word == "waiting") {
      habits.victims_exit = false;
    } else {
      throw ScenarioError("workers cannot be '" + word +
                          "'; accepted are: live silent stubborn waiting");
    }
  }
  if (const auto steps = option_of(command, "steps")) habits.steps = number_of(*steps);
  read_duration(command, "step", habits.step);
  read_duration(command, "start_up", habits.start_up);
}

void Stage::join(const ScenarioCommand& command) {
  accept_options(command, {"slots", "rank", "role", "rack"});
  NodeFacts facts;
  facts.node = NodeId{word_at(command, 0, "a node")};
  read_number(command, "slots", facts.slots);
  if (const auto role = option_of(command, "role")) facts.role = *role;
  if (const auto rack = option_of(command, "rack")) facts.labels["rack"] = *rack;
  if (const auto rank = option_of(command, "rank")) facts.fixed_rank = GroupRank{number_of(*rank)};
  require(world().join(facts, options_.habits), "a free node " + facts.node.value);
}

void Stage::advance(const ScenarioCommand& command) {
  accept_options(command, {});
  world().advance(duration_of(word_at(command, 0, "a duration")));
}

void Stage::end_worker(const ScenarioCommand& command) {
  accept_options(command, {"code", "signal"});
  const std::string& name = word_at(command, 0, "a worker");
  const auto [node, local_rank] = worker_of(name);
  agent::ExitStatus status;
  read_number(command, "code", status.code);
  if (const auto signal = option_of(command, "signal")) {
    status.by_signal = true;
    status.code = number_of(*signal);
  }
  require(world().exit_worker(node, local_rank, status), "worker " + name);
}

void Stage::change_weather(const ScenarioCommand& command) {
  accept_options(command, {"lost_request", "lost_reply", "duplicate", "reset"});
  NetworkWeather weather = options_.weather;
  read_share(command, "lost_request", weather.lost_request);
  read_share(command, "lost_reply", weather.lost_reply);
  read_share(command, "duplicate", weather.duplicate);
  read_share(command, "reset", weather.reset);
  world().set_weather(weather);
}

void Stage::kill(const ScenarioCommand& command) {
  accept_options(command, {});
  const std::string& what = word_at(command, 0, "'agent NODE', 'keeper NODE' or 'service'");
  if (what == "service") return world().kill_service();
  const std::string& node = word_at(command, 1, "a node");
  if (what == "agent") return require(world().kill_agent(node), "agent " + node);
  if (what == "keeper") return require(world().lose_keeper(node), "keeper of " + node);
  throw ScenarioError("cannot kill '" + what + "'; accepted are: agent keeper service");
}

void Stage::partition(const ScenarioCommand& command) {
  accept_options(command, {});
  const std::string& node = word_at(command, 0, "a node");
  const std::string way = command.words.size() > 1 ? command.words[1] : "both";
  if (way == "both") return require(world().partition(node, Direction::Both), node);
  if (way == "requests") return require(world().partition(node, Direction::ToService), node);
  if (way == "replies") return require(world().partition(node, Direction::FromService), node);
  throw ScenarioError("cannot cut '" + way + "'; accepted are: both requests replies");
}

void Stage::show_status(const ScenarioCommand& command) {
  accept_options(command, {});
  const auto status = world().status();
  if (!status) return said_.push_back("the service is down");
  std::string line = "phase " + to_string(status->phase) + ", generation " +
                     lrun::to_string(status->generation) + ", restarts spent " +
                     std::to_string(status->restarts_spent);
  if (status->phase == rendezvous::Phase::Active) {
    line += ", world size " + std::to_string(status->world_size);
  }
  if (status->outcome) line += ", outcome " + to_string(*status->outcome);
  said_.push_back(line);
  for (const rendezvous::NodeStatus& node : status->nodes) said_.push_back(describe(node));
}

// The commands that name one node or one worker and nothing else.
void Stage::disturb(const ScenarioCommand& command) {
  accept_options(command, {});
  const std::string& name = word_at(command, 0, "a node or a worker");
  if (command.verb == "stall") {
    const auto [node, local_rank] = worker_of(name);
    return require(world().stop_worker(node, local_rank), "worker " + name);
  }
  if (command.verb == "fail") {
    const auto [node, local_rank] = worker_of(name);
    return require(world().fail_worker(node, local_rank, "reported by the scenario"),
                   "worker " + name);
  }
  if (command.verb == "pause") return require(world().pause(name), name);
  if (command.verb == "resume") return require(world().resume(name), name);
  if (command.verb == "heal") return require(world().heal(name), name);
  if (command.verb == "signal") {
    const int number = number_of(word_at(command, 1, "the number of a signal"));
    return require(world().signal_agent(name, number), "agent " + name);
  }
  world().drain(name);
}

void Stage::perform(const ScenarioCommand& command) {
  using Deed = std::function<void(Stage&, const ScenarioCommand&)>;
  static const std::map<std::string, Deed> kDeeds = {
      {"job", &Stage::set_up_job},
      {"workers", &Stage::set_up_workers},
      {"join", &Stage::join},
      {"advance", &Stage::advance},
      {"exit", &Stage::end_worker},
      {"weather", &Stage::change_weather},
      {"kill", &Stage::kill},
      {"partition", &Stage::partition},
      {"status", &Stage::show_status},
      {"stall", &Stage::disturb},
      {"fail", &Stage::disturb},
      {"pause", &Stage::disturb},
      {"resume", &Stage::disturb},
      {"heal", &Stage::disturb},
      {"signal", &Stage::disturb},
      {"drain", &Stage::disturb},
      {"start", [](Stage& stage, const ScenarioCommand&) { stage.world().start_service(); }},
      {"restart", [](Stage& stage, const ScenarioCommand&) { stage.world().restart_service(); }},
      {"stop", [](Stage& stage, const ScenarioCommand&) { stage.world().stop_job("by the user"); }},
  };
  const auto deed = kDeeds.find(command.verb);
  if (deed != kDeeds.end()) return deed->second(*this, command);
  std::string all;
  for (const auto& [verb, unused] : kDeeds) all += " " + verb;
  throw ScenarioError("unknown command; accepted are:" + all);
}

}  // namespace lrun::sim
