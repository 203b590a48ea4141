// What workers print: pipes, files, the console.
//
// Owns the stream files of each attempt, the pipes of teed streams and the tail of stderr for the
// report. Nothing is lost in files, no line is torn on the console, bytes are never altered.
// Refuses to know processes. Called by agent/workers, on the loop.
//
//   neither    the worker inherits the launcher's stream
//   redirected the worker writes its file itself
//   teed       worker ─ pipe ─ agent ─ file, and with a prefix before each line the console
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "agent/stream_choice.h"
#include "base/fd.h"
#include "proto/ids.h"
#include "proto/worker_env.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

// ${role_name}, ${rank}, ${local_rank}, ${host} and ${attempt} are replaced, other names stay.
inline constexpr const char* kLinePrefix = "[${role_name}${local_rank}]:";

struct OutputOptions {
  std::string
      run_folder{};  // of make_run_folder; empty: no files, redirects and tee have no effect
  StreamChoice redirects{};
  StreamChoice tee{};  // implies redirect
  std::string line_prefix = kLinePrefix;
  std::string host{};
  // Where teed lines go; not owned.
  int console_stdout = 1;
  int console_stderr = 2;
};

// What a worker's process gets as its streams; closed here once the process has them. Not open: the
// launcher's own stream.
struct WorkerStreams {
  Fd stdout_end{};
  Fd stderr_end{};
};

class Output {
 public:
  // `on_dropped` is told of bytes that a console was too slow to take.
  Output(boost::asio::io_context& loop, OutputOptions options,
         std::function<void(Stream, std::size_t bytes)> on_dropped);
  ~Output();

  // Before the first worker of a generation, when none is alive: folders of an earlier group of the
  // same attempt are kept, as attempt_<n>.<k>.
  void begin_group(int attempt);
  // Makes the worker's folder and files. Throws std::system_error, with the path, when it cannot.
  WorkerStreams open(const WorkerEnv& worker);
  // The worker is gone: reads what is left in its pipes, bounded by kDrainLimit when a stranger
  // holds them, then closes them and calls back with the last lines of its stderr (at most
  // kTailLinesMax and kTailBytesMax; empty when the launcher never sees them).
  void drain(LocalRank local_rank, std::function<void(std::string last_lines)> on_drained);
  // Calls back once the consoles have taken everything, or stopped taking for kConsoleFlushLimit.
  void flush(std::function<void()> on_flushed);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::agent
