// Events, actions and nouns as one readable line each, for the log of a world.
#pragma once

#include <string>

#include "agent/events.h"
#include "rendezvous/events.h"

namespace lrun::sim {

std::string to_string(AgentState state);
std::string to_string(Outcome outcome);
std::string to_string(rendezvous::Phase phase);
std::string to_string(rendezvous::Evidence evidence);
std::string to_string(RefuseReason reason);
std::string to_string(GenerationReason reason);
std::string to_string(RejoinReason reason);
std::string to_string(agent::StopCause cause);

// What an agent orders. Empty for a heartbeat, which is too frequent to read.
std::string describe(const agent::Action& action);
// What the service decides. Empty for answers, which show at the agent.
std::string describe(const rendezvous::Action& action);
std::string describe(const Assignment& assignment);
// Empty for Continue.
std::string describe(const Directive& directive);

}  // namespace lrun::sim
