// One teed stream of one worker: from its pipe into its file and, with prefixes, onto the console.
//
// Owns pipe and file. Files get every byte as it came; the console gets whole lines. Refuses to
// know workers. Used by agent/output, on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/output_lines.h"
#include "base/fd.h"

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

class Console;
class DescriptorWatch;

class TeedStream {
 public:
  // `pipe` does not block; `path` names the file in complaints. `console` outlives this.
  TeedStream(boost::asio::io_context& loop, Fd pipe, Fd file, std::string path, Console& console,
             std::string prefix);
  ~TeedStream();

  bool is_at_end() const { return !pipe_; }
  std::string last_lines() const { return tail_.last_lines(); }
  // Takes what is in the pipe now; true at the end of the stream.
  bool read_all();
  // Whatever else may come, it is too late.
  void close();
  // Once, when the end is met by itself, not in read_all() or close().
  void on_end(std::function<void()> callback) { on_end_ = std::move(callback); }

 private:
  // True when there may be more.
  bool read_once();
  void save(std::string_view bytes);
  void complain();

  Fd file_;
  std::string path_;
  Console& console_;
  LinePrefixer prefixer_;
  StreamTail tail_;
  std::vector<char> buffer_;
  std::unique_ptr<DescriptorWatch> pipe_;  // none: the stream is at its end
  std::function<void()> on_end_;
  bool has_complained_ = false;
};

}  // namespace lrun::agent
