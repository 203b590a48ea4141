#include "agent/channel_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "agent/descriptor_watch.h"

namespace lrun::agent {
namespace {

// One read, then the loop looks at others: a worker that floods its channel delays nobody for long.
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kDrainBytesMax = 64 * kReadBytes;

}  // namespace

ChannelSocket::ChannelSocket(boost::asio::io_context& loop, Fd agents_end, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      watch_(std::make_unique<DescriptorWatch>(loop, std::move(agents_end))) {}

ChannelSocket::~ChannelSocket() = default;

void ChannelSocket::start() {
  if (is_open()) watch_->on_readable([this] { read(); });
}

void ChannelSocket::send(const channel::ToWorker& message) {
  if (!is_open()) return;
  const std::string line = channel::to_line(message);
  if (queue_.size() + line.size() > kChannelQueueBytesMax) {
    return garbled("it does not read what it is told");
  }
  queue_ += line;
  if (!is_waiting_) write();
}

void ChannelSocket::write() {
  is_waiting_ = false;
  while (is_open() && !queue_.empty()) {
    const ssize_t sent =
        ::send(watch_->get(), queue_.data(), queue_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      queue_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      is_waiting_ = true;
      return watch_->once_writable([this] { write(); });
    } else if (errno != EINTR) {
      // The worker has gone; its exit is the news.
      queue_.clear();
    }
  }
}

void ChannelSocket::drain() {
  // What fits into a socket's buffer; a stranger that still writes is not listened to for ever.
  for (std::size_t left = kDrainBytesMax; left > 0 && is_open() && read(); left -= kReadBytes) {
  }
}

bool ChannelSocket::read() {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::recv(watch_->get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (got <= 0) {
    // Silence from now on, which is no fault: a plain worker may close what it does not know.
    watch_.reset();
    return false;
  }
  for (const std::string& line : reader_.feed({bytes.data(), static_cast<std::size_t>(got)})) {
    if (!take(line)) return false;
  }
  if (reader_.is_broken()) {
    garbled("a line is longer than 64 KiB");
    return false;
  }
  return is_open();
}

bool ChannelSocket::take(const std::string& line) {
  auto parsed = channel::parse_from_worker(line);
  if (const auto* error = std::get_if<channel::GrammarError>(&parsed)) {
    garbled(error->sentence);
    return false;
  }
  auto& message = std::get<channel::FromWorker>(parsed);
  const auto* hello = std::get_if<channel::Hello>(&message);
  if (!has_said_hello_ && !hello) {
    garbled("its first message is not hello");
    return false;
  }
  if (hello && hello->version != channel::kVersion) {
    garbled("it speaks version " + std::to_string(hello->version) + " of the channel, this is " +
            std::to_string(channel::kVersion));
    return false;
  }
  has_said_hello_ = true;
  const std::weak_ptr<bool> life = life_;
  callbacks_.on_message(std::move(message));
  return !life.expired() && is_open();
}

void ChannelSocket::garbled(std::string reason) {
  watch_.reset();
  queue_.clear();
  // Moved out first: the callback may destroy this.
  const auto callback = std::exchange(callbacks_.on_garbled, nullptr);
  if (callback) callback(std::move(reason));
}

ChannelPair make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {.agents_end = Fd(ends[0]), .workers_end = Fd(ends[1])};
}

}  // namespace lrun::agent
