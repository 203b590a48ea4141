// How a run ends, for people and for shells: the report on stderr and the exit code.
#pragma once

#include <string>

#include "agent/events.h"

namespace lrun::launcher {

int exit_code_of(const agent::Finish& finish);
// The exit code of a job that ended so, where no agent of this process took part.
int exit_code_of(Outcome outcome);

// The failing node prints its whole report, the others one sentence; success prints nothing.
void print_finish(const agent::Finish& finish, const std::string& node, const std::string& report);

// `word` as a POSIX shell reads it back.
std::string shell_quoted(const std::string& word);

}  // namespace lrun::launcher
