#include "launcher/finish_report.h"

#include <cctype>
#include <cstdio>

#include "launcher/exit_codes.h"

namespace lrun::launcher {

int exit_code_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded:
      return kExitSucceeded;
    case Outcome::Failed:
      return kExitWorkersFailed;
    case Outcome::Stopped:
      return kExitRendezvous;
    case Outcome::NoProgress:
      return kExitNoProgress;
  }
  return kExitWorkersFailed;
}

int exit_code_of(const agent::Finish& finish) {
  if (finish.stopped_by_signal) return kExitSignalBase + *finish.stopped_by_signal;
  const bool was_refused = finish.cause && finish.cause->kind == FailureKind::Refused;
  if (finish.refusal || was_refused) return kExitRendezvous;
  return exit_code_of(finish.outcome);
}

void print_finish(const agent::Finish& finish, const std::string& node, const std::string& report) {
  if (finish.refusal) {
    std::fprintf(stderr, "lrun: %s\n", finish.refusal->sentence.c_str());
    return;
  }
  if (finish.stopped_by_signal) {
    std::fprintf(stderr, "lrun: node %s was stopped by signal %d\n", node.c_str(),
                 *finish.stopped_by_signal);
    return;
  }
  if (finish.outcome == Outcome::Succeeded) return;
  const bool is_own = !finish.cause || finish.cause->node.value == node;
  if (is_own && !report.empty()) {
    std::fputs(report.c_str(), stderr);
  } else if (finish.cause) {
    std::fprintf(stderr, "lrun: the job failed: %s\n", finish.cause->sentence.c_str());
  } else {
    std::fprintf(stderr, "lrun: the job was stopped\n");
  }
}

std::string shell_quoted(const std::string& word) {
  bool is_plain = !word.empty();
  for (const char c : word) {
    is_plain = is_plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                            std::string_view("-_./:=,@%+").find(c) != std::string_view::npos);
  }
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace lrun::launcher
