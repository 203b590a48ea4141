#include "agent/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/descriptor_watch.h"
#include "base/fd.h"

namespace lrun::agent {
namespace {

// The buffer's front is given back in pieces of at least this size.
constexpr std::size_t kCompactBytes = 256 * 1024;

}  // namespace

Console::Console(boost::asio::io_context& loop, int descriptor,
                 std::function<void(std::size_t)> on_dropped)
    : descriptor_(descriptor), on_dropped_(std::move(on_dropped)) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) {
    is_closed_ = true;
    return;
  }
  if (S_ISREG(facts.st_mode)) return;
  // O_NONBLOCK on the shared description would reach the shell and the workers, so pipes and
  // terminals are opened anew; where that is refused, small writes after a look must do.
  Fd own;
  if (!S_ISSOCK(facts.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    own.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  kind_ = S_ISSOCK(facts.st_mode) ? Kind::Socket
          : own.is_open()         ? Kind::NonBlocking
                                  : Kind::Blocking;
  if (!own.is_open()) own.reset(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  // /dev/null and the like always take everything, and some of them cannot be polled.
  if (S_ISCHR(facts.st_mode) && ::isatty(descriptor) == 0) {
    kind_ = Kind::File;
    return;
  }
  watch_ = std::make_unique<DescriptorWatch>(loop, std::move(own));
  descriptor_ = watch_->get();
}

Console::~Console() = default;

void Console::write(std::string_view lines) {
  if (is_closed_ || pending() + lines.size() > kConsoleBytesMax) {
    unreported_ += lines.size();
    on_dropped_(lines.size());
    return;
  }
  if (unreported_ > 0) {
    buffer_ += "[lrun: " + std::to_string(std::exchange(unreported_, 0)) +
               " bytes of output are not shown, the console was too slow]\n";
  }
  buffer_ += lines;
  if (!is_waiting_) pump();
}

void Console::pump() {
  is_waiting_ = false;
  while (pending() > 0) {
    const long taken = put(std::string_view(buffer_).substr(written_));
    if (taken > 0) {
      written_ += static_cast<std::size_t>(taken);
      continue;
    }
    if (taken == 0 && watch_) {
      is_waiting_ = true;
      watch_->once_writable([this] { pump(); });
      break;
    }
    is_closed_ = true;
    on_dropped_(pending());
    written_ = buffer_.size();
  }
  if (pending() == 0 || written_ > kCompactBytes) buffer_.erase(0, std::exchange(written_, 0));
}

long Console::put(std::string_view bytes) {
  ssize_t taken = 0;
  do {
    if (kind_ == Kind::Socket) {
      taken = ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::Blocking) {
      pollfd look{descriptor_, POLLOUT, 0};
      if (::poll(&look, 1, 0) != 1) return 0;
      taken = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    } else {
      taken = ::write(descriptor_, bytes.data(), bytes.size());
    }
  } while (taken < 0 && errno == EINTR);
  if (taken > 0) return taken;
  return taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

}  // namespace lrun::agent
