// The rendezvous' enumerators as the snake_case words of logs, metrics and `lrun status --json`.
//
// Pure. Each is total: a forgotten enumerator is a compile error.
#pragma once

#include <string_view>

#include "rendezvous/events.h"

namespace lrun::rendezvous {

std::string_view word(Phase phase);
std::string_view word(Role role);
std::string_view word(Evidence evidence);
std::string_view word(GenerationReason reason);
std::string_view word(RefuseReason reason);
std::string_view word(FailureKind kind);
std::string_view word(Outcome outcome);
std::string_view word(AgentState state);

}  // namespace lrun::rendezvous
