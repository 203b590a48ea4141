// The user's private folder on this machine: sockets of local jobs, locks of node names.
//
// Owns its place and its safety (0700, ours, no link). Everything in it may be deleted when no
// lrun runs.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"

namespace lrun::launcher {

// ${XDG_RUNTIME_DIR}/lrun, else /tmp/lrun-<uid>; made if absent. Throws std::runtime_error with one
// line when it belongs to somebody else or is open to others.
std::string runtime_folder();

// `text` as the name of a file: letters, digits, `.`, `_`, `-`; others become `_`, and a hash of
// the original keeps two texts apart. At most 64 bytes.
std::string safe_file_name(const std::string& text);

// An exclusive lock of `path`, made if absent; none when it was not free within `wait_ms`.
std::optional<Fd> lock_file(const std::string& path, int wait_ms);

// Ends the lock for every process that inherited the descriptor, and closes it here.
void unlock_file(Fd& lock);

// The name of this agent on this machine: `host`, else `host#1`, `host#2` … as long as names are
// held by other agents of the same job. The lock is held by the descriptor, so by every process
// that inherits it: until the last worker is reaped.
struct NodeName {
  std::string name;
  Fd lock;
};
NodeName claim_node_name(const std::string& folder, const std::string& host,
                         const std::string& run_id);

}  // namespace lrun::launcher
