// One of the launcher's standard streams, as the place where teed lines are shown.
//
// Owns a bounded buffer; never blocks the loop: a terminal that is stopped, or a slow reader of a
// pipe, costs lines on the console (counted), never in files, and never time of the workers.
// Refuses to know whose lines they are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace lrun::agent {

class DescriptorWatch;

// Enough for a burst of a hundred thousand lines in front of a reader that is merely slow.
inline constexpr std::size_t kConsoleBytesMax = 8 * 1024 * 1024;

class Console {
 public:
  // `descriptor` stays the caller's and keeps its flags: others share it.
  Console(boost::asio::io_context& loop, int descriptor,
          std::function<void(std::size_t bytes)> on_dropped);
  ~Console();

  // Whole lines. Taken or dropped as one.
  void write(std::string_view lines);
  std::size_t pending() const { return buffer_.size() - written_; }

 private:
  enum class Kind { File, NonBlocking, Socket, Blocking };
  void pump();
  // Bytes taken; 0: not now; −1: never again.
  long put(std::string_view bytes);

  std::unique_ptr<DescriptorWatch> watch_;  // none for files
  int descriptor_;
  Kind kind_ = Kind::File;
  std::function<void(std::size_t)> on_dropped_;
  std::string buffer_;
  std::size_t written_ = 0;     // of the buffer's front
  std::size_t unreported_ = 0;  // dropped since the reader was last told
  bool is_waiting_ = false;
  bool is_closed_ = false;
};

}  // namespace lrun::agent
