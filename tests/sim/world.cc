#include "tests/sim/world.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tests/sim/checks.h"
#include "tests/sim/describe.h"
#include "tests/sim/process.h"
#include "tests/sim/service_life.h"

namespace lrun::sim {
namespace {

// More steps at one instant than any group of a simulation needs: something runs in circles.
constexpr int kStepsAtOnceMax = 4000;
// As agent/rendezvous_calls: after its Finish an agent has this long to say that it leaves.
constexpr Duration kExitLimit = std::chrono::seconds(3);

}  // namespace

struct World::Impl {
  explicit Impl(Options told)
      : options(std::move(told)),
        random(options.seed),
        network(agenda, random.fork(), options.weather,
                {.is_service_up = [this] { return service.has_value(); },
                 .to_service = [this](const rendezvous::Event& event) { tell_service(event); },
                 .to_process =
                     [this](ProcessId id, const std::function<void()>& deed) {
                       if (Process* process = find(id)) process->run(deed);
                     }}),
        workers(
            agenda, random.fork(), chronicle,
            [this](ProcessId id, const agent::Event& event) {
              if (Process* process = find(id)) {
                process->run([process, event] { process->step(event); });
              }
            },
            [this](ProcessId id) {
              const Process* process = find(id);
              return process != nullptr && process->is_paused();
            }),
        checks({.max_restarts = options.service.max_restarts, .fence = fence_bound(),
                .lease = options.service.lease},
               chronicle),
        term(options.first_term) {
    start_service(options.service.may_have_predecessor);
  }

  // Two thirds of the lease, one heartbeat in which it is noticed, and the way there and back.
  Duration fence_bound() const {
    return options.service.lease * 2 / 3 + options.service.heartbeat +
           4 * network.weather().delay_max + std::chrono::milliseconds(100);
  }

  Process* find(ProcessId id) {
    const auto found = processes.find(id);
    return found == processes.end() ? nullptr : &found->second;
  }
  Process* find(const std::string& node) {
    const auto found = on_node.find(node);
    return found == on_node.end() ? nullptr : find(found->second);
  }
  const Process* find(const std::string& node) const {
    return const_cast<Impl*>(this)->find(node);
  }

  void command(const std::string& text) { chronicle.note(agenda.now(), ">", text); }

  void start_service(bool may_have_predecessor) {
    rendezvous::Config config = options.service;
    config.may_have_predecessor = may_have_predecessor;
    checks.service_started(agenda.now());
    service.emplace(
        ServiceLife::Surroundings{
            .agenda = agenda,
            .network = network,
            .chronicle = chronicle,
            .on_step =
                [this](const rendezvous::Event& event,
                       const std::vector<rendezvous::Action>& actions) {
                  ++steps_at_once;
                  for (const rendezvous::Action& action : actions) {
                    if (const auto* published = std::get_if<rendezvous::GenerationPublished>(&action)) {
                      generations.push_back(*published);
                    }
                  }
                  checks.check(agenda.now(), event, actions);
                }},
        config, term++);
    ++service_life;
  }

  void tell_service(const rendezvous::Event& event) {
    if (service_lags) {
      unheard.push_back(event);
    } else {
      service->step(event);
    }
  }

  // It wakes, notices how long it stood still, and finds what came meanwhile.
  void service_wakes(Duration lag) {
    service_lags = false;
    service->step(rendezvous::LagMeasured{lag});
    for (const rendezvous::Event& event : std::exchange(unheard, {})) service->step(event);
  }

  void stop_service() {
    service.reset();
    service_lags = false;
    unheard.clear();
    network.service_died();
  }

  std::optional<Instant> service_deadline() const {
    if (!service || service_lags) return std::nullopt;
    return service->next_deadline();
  }

  // The process is over: its machine's kernel closes what it held.
  void end_process(ProcessId id) {
    workers.agent_died(id);
    network.process_died(id);
    const auto found = processes.find(id);
    if (found->second.finish()) ended[found->second.node()] = *found->second.finish();
    on_node.erase(found->second.node());
    // Its own code may be on the stack.
    dead.push_back(processes.extract(found));
  }

  void agent_stepped(Process& process, const std::vector<agent::Action>& actions) {
    ++steps_at_once;
    checks.check(agenda.now(), process, actions, workers);
    const bool finished = std::any_of(actions.begin(), actions.end(), [](const auto& action) {
      return std::holds_alternative<agent::Finish>(action);
    });
    if (finished) wait_for_exit(process.id(), agenda.now() + kExitLimit);
  }

  void wait_for_exit(ProcessId id, Instant limit) {
    network.in_process(id, std::chrono::milliseconds(5), [this, id, limit] {
      const Process* process = find(id);
      if (process->may_exit() || agenda.now() >= limit) {
        chronicle.note(agenda.now(), process->node(), "exits");
        return end_process(id);
      }
      wait_for_exit(id, limit);
    });
  }

  std::optional<Instant> next() const {
    std::optional<Instant> earliest = agenda.next();
    const auto consider = [&earliest](std::optional<Instant> candidate) {
      if (candidate && (!earliest || *candidate < *earliest)) earliest = candidate;
    };
    consider(service_deadline());
    for (const auto& [id, process] : processes) consider(process.next_deadline());
    return earliest;
  }

  // What is due now, one thing after the other.
  void run_instant() {
    if (agenda.run_one()) return;
    if (service_deadline() && *service_deadline() <= agenda.now()) {
      return service->step(rendezvous::TimePassed{});
    }
    for (auto& [id, process] : processes) {
      const auto due = process.next_deadline();
      if (due && *due <= agenda.now()) return process.step(agent::TimePassed{});
    }
  }

  bool advance_until(const std::function<bool()>& done, Duration limit) {
    const Instant end = agenda.now() + limit;
    while (chronicle.violations().empty()) {
      if (done()) return true;
      const std::optional<Instant> due = next();
      if (!due || *due > end) {
        agenda.go_to(end);
        return done();
      }
      if (*due > agenda.now()) {
        agenda.go_to(*due);
        steps_at_once = 0;
      }
      run_instant();
      dead.clear();
      if (steps_at_once > kStepsAtOnceMax) chronicle.violation(agenda.now(), "a busy loop");
    }
    return false;
  }

  Options options;
  Agenda agenda;
  Random random;
  Chronicle chronicle;
  Network network;
  Workers workers;
  Checks checks;
  std::uint64_t term;
  std::optional<ServiceLife> service;
  std::uint64_t service_life = 0;
  bool service_lags = false;
  std::vector<rendezvous::Event> unheard;  // came while the service stood still
  ProcessId last_process = 0;
  std::map<ProcessId, Process> processes;
  std::map<std::string, ProcessId> on_node;
  std::vector<std::map<ProcessId, Process>::node_type> dead;
  std::map<std::string, agent::Finish> ended;
  std::vector<rendezvous::GenerationPublished> generations;
  int steps_at_once = 0;
};

World::World(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
World::~World() = default;

// --- commands ----------------------------------------------------------------------------------

bool World::join(const std::string& node, int slots) {
  NodeFacts facts;
  facts.node = NodeId{node};
  facts.slots = slots;
  return join(facts, impl_->options.habits);
}

bool World::join(const NodeFacts& facts, const WorkerHabits& habits) {
  const std::string& node = facts.node.value;
  if (impl_->on_node.contains(node)) return false;
  impl_->command("join " + node + " slots=" + std::to_string(facts.slots));
  const ProcessId id = ++impl_->last_process;
  agent::Config config = impl_->options.agent;
  config.run_id = impl_->options.service.run_id;
  config.facts = facts;
  config.facts.incarnation = Incarnation{impl_->random.next()};
  if (config.facts.address.empty()) config.facts.address = node;
  if (config.facts.master_port == 0) config.facts.master_port = 29500;
  Process::Surroundings around{.agenda = impl_->agenda,
                               .network = impl_->network,
                               .workers = impl_->workers,
                               .chronicle = impl_->chronicle,
                               .on_step = [world = impl_.get()](Process& process,
                                                                const auto& actions) {
                                 world->agent_stepped(process, actions);
                               }};
  impl_->on_node[node] = id;
  impl_->ended.erase(node);
  Process& process =
      impl_->processes
          .try_emplace(id, std::move(around), id, std::move(config), habits, impl_->options.service.hold)
          .first->second;
  process.start();
  return true;
}

bool World::kill_agent(const std::string& node) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("kill agent " + node);
  impl_->chronicle.count("agent killed");
  impl_->end_process(process->id());
  return true;
}

bool World::exit_worker(const std::string& node, int local_rank, agent::ExitStatus status) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("exit " + node + "/" + std::to_string(local_rank) +
                 (status.by_signal ? " signal=" : " code=") + std::to_string(status.code));
  const bool found = impl_->workers.exit(process->id(), LocalRank{local_rank}, status);
  if (found) impl_->chronicle.count("worker ended");
  return found;
}

bool World::stop_worker(const std::string& node, int local_rank) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("stop worker " + node + "/" + std::to_string(local_rank));
  const bool found = impl_->workers.freeze(process->id(), LocalRank{local_rank});
  if (found) impl_->chronicle.count("worker stood still");
  return found;
}

bool World::fail_worker(const std::string& node, int local_rank, const std::string& reason) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("fail " + node + "/" + std::to_string(local_rank) + ": " + reason);
  const bool found = impl_->workers.fail(process->id(), LocalRank{local_rank}, reason);
  if (found) impl_->chronicle.count("worker reported a failure");
  return found;
}

bool World::garble_worker(const std::string& node, int local_rank) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("garble " + node + "/" + std::to_string(local_rank));
  const bool found = impl_->workers.garble(process->id(), LocalRank{local_rank});
  if (found) impl_->chronicle.count("worker garbled");
  return found;
}

bool World::lose_keeper(const std::string& node) {
  const Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("lose keeper " + node);
  impl_->chronicle.count("keeper lost");
  impl_->workers.keeper_died(process->id());
  return true;
}

bool World::signal_agent(const std::string& node, int signal_number) {
  Process* process = impl_->find(node);
  if (process == nullptr) return false;
  impl_->command("signal " + node + " " + std::to_string(signal_number));
  impl_->chronicle.count("agent signalled");
  process->run([process, signal_number] { process->step(agent::SignalReceived{signal_number}); });
  return true;
}

bool World::pause(const std::string& node) {
  Process* process = impl_->find(node);
  if (process == nullptr || process->is_paused()) return false;
  impl_->command("pause " + node);
  impl_->chronicle.count("node paused");
  process->pause();
  return true;
}

bool World::resume(const std::string& node) {
  Process* process = impl_->find(node);
  if (process == nullptr || !process->is_paused()) return false;
  impl_->command("resume " + node);
  process->resume();
  return true;
}

bool World::partition(const std::string& node, Direction direction) {
  static constexpr const char* kWays[] = {"", " to service", " from service"};
  impl_->command("partition " + node + kWays[static_cast<int>(direction)]);
  impl_->chronicle.count("partition");
  impl_->network.cut(node, direction);
  return true;
}

bool World::heal(const std::string& node) {
  impl_->command("heal " + node);
  impl_->network.mend(node);
  return true;
}

void World::set_weather(const NetworkWeather& weather) {
  impl_->command("weather changes");
  impl_->network.set_weather(weather);
  impl_->checks.set_fence(impl_->fence_bound());
}

void World::calm_workers() { impl_->workers.calm(); }

void World::drain(const std::string& node) {
  impl_->command("drain " + node);
  impl_->chronicle.count("drain");
  if (impl_->service) {
    impl_->tell_service(rendezvous::DrainReceived{impl_->network.direct_ticket(), NodeId{node}});
  }
}

void World::stop_job(const std::string& reason) {
  impl_->command("stop job: " + reason);
  impl_->chronicle.count("job stopped");
  if (impl_->service) {
    impl_->tell_service(rendezvous::StopReceived{impl_->network.direct_ticket(), reason});
  }
}

void World::kill_service() {
  if (!impl_->service) return;
  impl_->command("kill service");
  impl_->chronicle.count("service killed");
  impl_->stop_service();
}

void World::start_service() {
  if (impl_->service) return;
  impl_->command("start service");
  impl_->start_service(true);
}

void World::restart_service() {
  kill_service();
  start_service();
}

void World::lag_service(Duration lag) {
  if (!impl_->service || impl_->service_lags) return;
  impl_->command("service lags");
  impl_->chronicle.count("service stood still");
  impl_->service_lags = true;
  impl_->agenda.after(lag, [world = impl_.get(), lag, life = impl_->service_life] {
    if (world->service_life == life && world->service_lags) world->service_wakes(lag);
  });
}

bool World::advance(Duration duration) {
  impl_->advance_until([] { return false; }, duration);
  return impl_->chronicle.violations().empty();
}

bool World::advance_until(const std::function<bool()>& done, Duration limit) {
  return impl_->advance_until(done, limit);
}

// --- questions ---------------------------------------------------------------------------------

Duration World::now() const { return impl_->agenda.now().time_since_epoch(); }
const std::vector<std::string>& World::log() const { return impl_->chronicle.lines(); }
void World::keep_log(bool kept) { impl_->chronicle.keep_text(kept); }
std::uint64_t World::log_hash() const { return impl_->chronicle.hash(); }
const std::vector<std::string>& World::violations() const { return impl_->chronicle.violations(); }
bool World::is_service_up() const { return impl_->service.has_value(); }

std::optional<rendezvous::Status> World::status() const {
  if (!impl_->service) return std::nullopt;
  return impl_->service->status();
}

bool World::has_agent(const std::string& node) const { return impl_->find(node) != nullptr; }

std::optional<AgentState> World::agent_state(const std::string& node) const {
  const Process* process = impl_->find(node);
  if (process == nullptr) return std::nullopt;
  return process->supervisor().state();
}

std::optional<Assignment> World::assignment(const std::string& node) const {
  const Process* process = impl_->find(node);
  if (process == nullptr) return std::nullopt;
  return process->supervisor().assignment();
}

std::optional<agent::Finish> World::ended(const std::string& node) const {
  const auto found = impl_->ended.find(node);
  if (found == impl_->ended.end()) return std::nullopt;
  return found->second;
}

int World::running_workers(const std::string& node) const {
  const Process* process = impl_->find(node);
  return process == nullptr ? 0 : impl_->workers.running(process->id());
}

std::int64_t World::committed_step() const { return impl_->workers.committed_step(); }

std::vector<std::string> World::nodes() const {
  std::vector<std::string> names;
  for (const auto& [node, id] : impl_->on_node) names.push_back(node);
  return names;
}

const std::vector<rendezvous::GenerationPublished>& World::generations() const {
  return impl_->generations;
}

std::vector<World::Count> World::counts() const {
  std::vector<Count> counts;
  for (const auto& [name, count] : impl_->chronicle.counts()) counts.push_back({name, count});
  return counts;
}

void World::count_outcome(Outcome outcome) {
  impl_->chronicle.count("agents: " + to_string(outcome));
}

void World::violate(const std::string& sentence) {
  impl_->chronicle.violation(impl_->agenda.now(), sentence);
}

}  // namespace lrun::sim
