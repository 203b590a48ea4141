#include "tests/sim/world.h"

#include <utility>

#include "tests/sim/world_impl.h"

namespace lrun::sim {

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
  Process::Surroundings around{
      .agenda = impl_->agenda,
      .network = impl_->network,
      .workers = impl_->workers,
      .chronicle = impl_->chronicle,
      .on_step = [world = impl_.get()](Process& process, const auto& actions) {
        world->agent_stepped(process, actions);
      }};
  impl_->on_node[node] = id;
  impl_->ended.erase(node);
  Process& process = impl_->processes
                         .try_emplace(id, std::move(around), id, std::move(config), habits,
                                      impl_->options.service.hold)
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

}  // namespace lrun::sim
