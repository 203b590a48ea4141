#include "tests/sim/world.h"
#include "tests/sim/world_impl.h"

namespace lrun::sim {

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
