#include "trainer/comm/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "trainer/comm/ring.h"
#include "trainer/comm/shared_link.h"
#include "trainer/comm/socket.h"

namespace lrun::comm {
namespace {

// Doorbell memory, doorbell event, ring memory.
constexpr std::size_t kDescriptors = 3;

// Descriptors that came beside bytes; owned at once, whatever becomes of the message.
void take_descriptors(msghdr& message, std::vector<Fd>& descriptors) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(c) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
}

}  // namespace

Handshake::Handshake(Fd socket, const Greeting& mine, const Doorbell& doorbell, bool is_dialler)
    : socket_(std::move(socket)), mine_(mine), doorbell_(&doorbell), is_dialler_(is_dialler) {}

Handshake Handshake::dial(Fd socket, const Greeting& mine, GlobalRank peer,
                          const Doorbell& doorbell) {
  Handshake handshake(std::move(socket), mine, doorbell, true);
  handshake.peer_ = peer;
  handshake.purpose_ = static_cast<Purpose>(mine.purpose);
  return handshake;
}

Handshake Handshake::accept(Fd socket, const Greeting& mine, const Doorbell& doorbell) {
  return {std::move(socket), mine, doorbell, false};
}

short Handshake::poll_events() const {
  return is_dialler_ && !is_greeting_sent_ ? POLLOUT : POLLIN;
}

Handshake::State Handshake::advance() {
  if (state_ == State::Done || state_ == State::Failed) return state_;
  if (is_dialler_ && !is_greeting_sent_) {
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) != 1) return state_;
    if (!send_greeting(false)) return fail();
  }
  const std::optional<bool> trusted = receive_greeting();
  if (!trusted) return state_;
  if (!*trusted) return fail();
  return state_ = after_greeting();
}

Handshake::State Handshake::after_greeting() {
  const bool is_shared = purpose_ == Purpose::ControlAndSharedMemory;
  if (state_ == State::Descriptors) return make_link() ? State::Done : fail();
  if (!is_dialler_) {
    if (!send_greeting(is_shared)) return fail();
    return is_shared ? State::Descriptors : State::Done;
  }
  if (!is_shared) return State::Done;
  return send_greeting(true) && make_link() ? State::Done : fail();
}

bool Handshake::send_greeting(bool with_descriptors) {
  mine_.purpose = static_cast<std::uint64_t>(purpose_);
  is_greeting_sent_ = true;
  std::vector<int> descriptors;
  if (with_descriptors) {
    incoming_.emplace(SharedMemory::create(Ring::kMemoryBytes));
    descriptors = {doorbell_->memory_descriptor(), doorbell_->descriptor(),
                   incoming_->descriptor()};
  }
  return send_message(socket_, &mine_, sizeof mine_, descriptors);
}

std::optional<bool> Handshake::receive_greeting() {
  std::byte bytes[sizeof(Greeting)];
  iovec piece{bytes, sizeof bytes - received_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got <= 0) return false;
  take_descriptors(message, descriptors_);
  received_.insert(received_.end(), bytes, bytes + got);
  if (received_.size() < sizeof(Greeting)) return std::nullopt;
  Greeting theirs;
  std::memcpy(&theirs, received_.data(), sizeof theirs);
  received_.clear();
  if (!is_trusted(theirs)) return false;
  peer_ = GlobalRank{theirs.rank};
  purpose_ = static_cast<Purpose>(theirs.purpose);
  return true;
}

bool Handshake::is_trusted(const Greeting& theirs) const {
  const bool same_group = theirs.magic == mine_.magic && theirs.version == mine_.version &&
                          theirs.term == mine_.term && theirs.number == mine_.number &&
                          theirs.world_size == mine_.world_size && theirs.nonce == mine_.nonce;
  const bool is_known =
      theirs.purpose <= static_cast<std::uint64_t>(Purpose::ControlAndSharedMemory);
  // Higher ranks dial lower ones; nobody changes rank or purpose on the way.
  if (!same_group || !is_known || theirs.rank < 0) return false;
  if (peer_.value < 0) return theirs.rank > mine_.rank && theirs.rank < mine_.world_size;
  return theirs.rank == peer_.value && theirs.purpose == static_cast<std::uint64_t>(purpose_);
}

bool Handshake::make_link() {
  if (descriptors_.size() != kDescriptors || !incoming_) return false;
  try {
    Doorbell peer = Doorbell::open(std::move(descriptors_[0]), std::move(descriptors_[1]));
    SharedMemory outgoing = SharedMemory::map(std::move(descriptors_[2]), Ring::kMemoryBytes);
    link_ =
        std::make_unique<SharedLink>(std::move(*incoming_), std::move(outgoing), std::move(peer));
    return true;
  } catch (const std::exception&) {  // what the peer sent is not what it should be
    return false;
  }
}

Handshake::State Handshake::fail() { return state_ = State::Failed; }

}  // namespace lrun::comm
