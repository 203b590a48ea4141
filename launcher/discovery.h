// How two terminals of one machine find each other: Unix sockets in the user's runtime folder.
//
// Owns the names of the sockets and the decision "join that job or begin a new one". Each job has
// the socket jobs/<run id>.sock; a second job of the same name jobs/<run id>.2.sock, and so on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace lrun::launcher {

struct SocketChoice {
  std::string path;
  bool is_served = false;  // a job with room is served there: join it
  Fd lock;  // held until this node is known to the job, so that a third terminal sees it
};

// `joins`: whether a running job of this name with room is joined; otherwise the first free name is
// taken. Throws std::runtime_error with one line when the folder cannot be used or every name is
// taken.
SocketChoice choose_socket(const std::string& runtime_folder, const std::string& run_id,
                           bool joins);

// Sockets of this user's jobs that answer, for `lrun status`.
std::vector<std::string> live_sockets(const std::string& runtime_folder);

// The job name of a command that was given none: the same for the same command in the same folder,
// different for another one, so that unrelated jobs never meet.
std::string run_id_of_command(const std::vector<std::string>& command, const std::string& folder,
                              int min_nodes, int max_nodes);

}  // namespace lrun::launcher
