// The folder of one run's logs: <log-dir>/<run id>_<random>.
//
// Owns its making and naming; refuses to know what goes in. The launcher makes it before anything
// starts, so that a folder that cannot be written is a usage error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "agent/stream_choice.h"

namespace lrun::agent {

// A run id as one safe folder name: every byte other than letters, digits, '-', '_', '.' becomes
// '_'.
std::string folder_name(std::string_view run_id);

// Makes the folder, mode 0700 where it is temporary, and returns its absolute path. `log_dir`: made
// when absent; "/dev/null": no files, the result is empty; none: a new `torchelastic_*` folder in
// $TMPDIR, else /tmp. Errors name the path and the system's reason.
std::variant<std::string, UsageError> make_run_folder(std::optional<std::string> log_dir,
                                                      std::string_view run_id);

}  // namespace lrun::agent
