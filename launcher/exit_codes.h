// The exit codes of `lrun`, one meaning each. docs/exit-codes.md and k8s/ repeat them; a test
// compares.
#pragma once

namespace lrun {

inline constexpr int kExitSucceeded = 0;
inline constexpr int kExitWorkersFailed = 1;  // beyond the budget of restarts
inline constexpr int kExitUsage = 2;          // nothing was started; a retry cannot help
inline constexpr int kExitRendezvous = 3;     // unreachable, refused, closed, not formed in time
inline constexpr int kExitNoProgress = 93;    // do not requeue: several restarts without progress
inline constexpr int kExitSignalBase = 128;   // + n: stopped by signal n

}  // namespace lrun
