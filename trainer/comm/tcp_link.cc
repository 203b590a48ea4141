#include "trainer/comm/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "trainer/comm/schedule.h"

namespace lrun::comm {
namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// What is left of the pieces after their first `sent` bytes.
std::vector<iovec> remaining(std::span<const Link::Bytes> pieces, std::size_t sent) {
  std::vector<iovec> left;
  for (Link::Bytes piece : pieces) {
    const std::size_t skipped = std::min(sent, piece.size());
    sent -= skipped;
    piece = piece.subspan(skipped);
    // sendmsg only reads.
    if (!piece.empty()) left.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  return left;
}

}  // namespace

// Aligned for floats, as operator new[] gives it.
TcpLink::TcpLink(Fd socket) : socket_(std::move(socket)), frame_(new std::byte[kFrameBytesMax]) {}

bool TcpLink::send(std::span<const Bytes> pieces) {
  is_blocked_ = false;
  if (is_closed_) return false;
  for (;;) {
    std::vector<iovec> left = remaining(pieces, sent_);
    if (left.empty()) {
      sent_ = 0;
      return true;
    }
    msghdr message{};
    message.msg_iov = left.data();
    message.msg_iovlen = left.size();
    const auto sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      is_blocked_ = would_block();
      is_closed_ = !is_blocked_;
      return false;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
}

const std::byte* TcpLink::front(std::size_t bytes) {
  return fill(frame_.get(), bytes) ? frame_.get() : nullptr;
}

bool TcpLink::receive(std::span<std::byte> destination) {
  if (!fill(destination.data(), destination.size())) return false;
  pop();
  return true;
}

// True when the incoming frame is complete.
bool TcpLink::fill(std::byte* destination, std::size_t bytes) {
  while (received_ < bytes) {
    if (is_closed_) return false;
    const auto got =
        ::recv(socket_.get(), destination + received_, bytes - received_, MSG_DONTWAIT);
    if (got < 0 && would_block()) return false;
    if (got <= 0) {
      is_closed_ = true;
      return false;
    }
    received_ += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace lrun::comm
