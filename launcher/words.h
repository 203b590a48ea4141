// Enumerators as the words that people and machines read: status, JSON, reports. docs/lrun.md lists
// them. Pure; adding an enumerator without a word does not compile.
#pragma once

#include <string_view>

#include "rendezvous/events.h"

namespace lrun::launcher {

std::string_view word(rendezvous::Phase phase);
std::string_view word(rendezvous::Role role);
std::string_view word(GenerationReason reason);
std::string_view word(AgentState state);
std::string_view word(FailureKind kind);
std::string_view word(Outcome outcome);

}  // namespace lrun::launcher
