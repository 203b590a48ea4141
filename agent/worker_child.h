// The first moments of a worker: from the keeper's fork to the program.
//
// Owns what a worker's process is: leader of its own session and process group, ended by the kernel
// with the keeper, empty signal mask, signal dispositions as at the launcher's start. Called by the
// keeper's loop only.
#pragma once

#include <sys/types.h>

#include "agent/keeper_messages.h"
#include "base/fd.h"

namespace lrun::agent {

struct StartedChild {
  pid_t pid = -1;  // −1: fork failed, errno says why
  // End of file: the program runs. Four bytes: the errno with which it could not be executed.
  Fd exec_result;
};

StartedChild start_child(const SpawnPayload& payload, const SpawnDescriptors& descriptors);

}  // namespace lrun::agent
