// Asks the loop to stop at the next step border.
//
// Owns the handlers of SIGTERM and SIGINT and one flag, nothing else: saving, with its collectives,
// never happens inside a signal handler. A second signal ends the process at once.
#pragma once

namespace lrun::loop {

// Once, when there is a loop to stop.
void watch_stop_signals();
// The first signal that came, 0 before. Any thread.
int stop_signal();

}  // namespace lrun::loop
