#include "tests/sim/checks.h"

#include <algorithm>

namespace lrun::sim {

void Checks::require(Instant now, bool holds, const std::string& sentence) {
  if (!holds) chronicle_.violation(now, sentence);
}

void Checks::published(Instant now, Generation generation) {
  require(now, newest_ < generation,
          "generation " + to_string(generation) + " after " + to_string(newest_));
  newest_ = generation;
  newest_at_ = now;
}

void Checks::check(Instant now, const Process& process, const std::vector<agent::Action>& actions,
                   const Workers& workers) {
  const std::string& node = process.node();
  for (const agent::Action& action : actions) {
    if (std::holds_alternative<agent::Finish>(action)) {
      require(now, workers.running(process.id()) == 0, node + " is over and has workers");
    }
    const auto* reform = std::get_if<agent::ReformStarted>(&action);
    if (reform != nullptr && reform->cause == agent::StopCause::LeaseLost) {
      check_killed(now, process, workers);
    }
    const auto* change = std::get_if<agent::StateChanged>(&action);
    if (change == nullptr || change->to != AgentState::Starting) continue;
    check_meaning(now, process.id(), node, *process.supervisor().assignment());
    const bool begins_anew = change->from == AgentState::Joining;
    require(
        now,
        !begins_anew || workers.running(process.id()) <= process.supervisor().assignment()->slots,
        node + " begins a group while workers of the last one run");
  }
  check_fence(now, process);
}

// Politeness is for those who may still act: fenced workers are killed at once.
void Checks::check_killed(Instant now, const Process& process, const Workers& workers) {
  for (const agent::WorkerView& view : process.supervisor().workers()) {
    require(now, !view.is_alive || !workers.is_running(process.id(), view.local_rank),
            process.node() + " is fenced and its workers run on");
  }
}

void Checks::check_fence(Instant now, const Process& process) {
  if (process.is_paused()) return;
  const AgentState state = process.supervisor().state();
  if (state != AgentState::Starting && state != AgentState::Running) return;
  const Generation own = process.supervisor().assignment()->generation;
  if (newest_ <= own || process.habits().is_live) return;
  const Instant since = std::max({newest_at_, process.resumed_at(), service_listens_until_});
  require(now, now - since <= limits_.fence,
          process.node() + " still runs plain workers of generation " + to_string(own) +
              " although " + to_string(newest_) + " exists");
}

void Checks::check_meaning(Instant now, ProcessId process, const std::string& node,
                           const Assignment& assignment) {
  const std::string name = "generation " + to_string(assignment.generation);
  auto [at, is_new] = meanings_.try_emplace(assignment.generation);
  Meaning& meaning = at->second;
  if (is_new) {
    meaning.first = assignment;
    require(now, assignment.restarts_spent <= limits_.max_restarts,
            name + " spends more restarts than allowed");
  }
  // The first group of a new service may know less: what its members have lived through can reach
  // it after an old Join of theirs has. From then on it knows.
  int& known = spent_known_[process];
  require(now, known <= assignment.restarts_spent || assignment.generation.number == 1,
          name + " forgets restarts that were spent");
  known = std::max(known, assignment.restarts_spent);
  const Assignment& first = meaning.first;
  require(now,
          first.world_size == assignment.world_size &&
              first.group_world_size == assignment.group_world_size &&
              first.master_addr == assignment.master_addr &&
              first.master_port == assignment.master_port &&
              first.restarts_spent == assignment.restarts_spent,
          name + " means different things to its nodes");
  for (const auto& [other, theirs] : meaning.by_node) {
    const bool is_apart =
        theirs.first_global_rank.value + theirs.slots <= assignment.first_global_rank.value ||
        assignment.first_global_rank.value + assignment.slots <= theirs.first_global_rank.value;
    require(now, other == node ? theirs == assignment : is_apart,
            name + " gives ranks twice, to " + other + " and " + node);
  }
  meaning.by_node[node] = assignment;
}

void Checks::check(Instant now, const rendezvous::Event& event,
                   const std::vector<rendezvous::Action>& actions) {
  if (const auto* publish = std::get_if<rendezvous::PublishReceived>(&event)) {
    commits_[publish->ticket] = publish->request.generation;
  }
  for (const rendezvous::Action& action : actions) {
    if (const auto* publication = std::get_if<rendezvous::GenerationPublished>(&action)) {
      published(now, publication->generation);
    }
    const auto* answer = std::get_if<rendezvous::Acknowledge>(&action);
    if (answer == nullptr) continue;
    const auto commit = commits_.extract(answer->ticket);
    if (commit.empty() || answer->refusal) continue;
    require(now, commit.mapped() >= newest_commit_,
            "the blackboard accepts a value of generation " + to_string(commit.mapped()) +
                " after one of " + to_string(newest_commit_));
    newest_commit_ = std::max(newest_commit_, commit.mapped());
  }
}

}  // namespace lrun::sim
