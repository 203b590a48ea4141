// What an agent says in the log about its workers and its own state.
//
// Owns the words and keys; refuses to decide what happens. Called by agent/agent, on the loop.
#pragma once

#include <string>

#include "agent/events.h"
#include "agent/workers.h"

namespace lrun::agent::agent_log {

std::string word(AgentState state);

void worker_started(const WorkerSpawned& event, const WorkerEnv& worker);
void worker_exited(const WorkerEnd& end, Generation generation);
void state_changed(const StateChanged& change, Generation generation);
void assigned(const Assignment& assignment);
void failure_seen(const FailureSeen& failure, Generation generation);
void refused(const Refusal& refusal, const char* what);
void finished(const Finish& finish);
// What the user should know about the environment that workers inherit, once.
void environment_notes(const Environment& parent, int slots);

}  // namespace lrun::agent::agent_log
