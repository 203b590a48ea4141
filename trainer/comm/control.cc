#include "trainer/comm/control.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lrun::comm {
namespace {

constexpr std::uint32_t kGoodbye = 0;

// On the wire in the byte order of the machine. Sentences are cut to fit.
struct Record {
  std::uint32_t kind = kGoodbye;  // kGoodbye or a Failure::Kind
  std::int32_t peer = 0;
  std::uint32_t length = 0;
  char sentence[1012] = {};
};
static_assert(sizeof(Record) == 1024);

bool is_valid(const Record& record) {
  return record.kind <= static_cast<std::uint32_t>(Failure::Kind::Mismatch) &&
         record.length <= sizeof record.sentence;
}

}  // namespace

Control::Control(Fd socket) : socket_(std::move(socket)) {}

void Control::send(const Failure& failure) {
  send_record(static_cast<std::uint32_t>(failure.kind), failure);
}

void Control::send_goodbye() { send_record(kGoodbye, {}); }

void Control::send_record(std::uint32_t kind, const Failure& failure) {
  if (!socket_.is_open() || is_closed_) return;
  Record record;
  record.kind = kind;
  record.peer = failure.peer.value;
  record.length =
      static_cast<std::uint32_t>(std::min(failure.sentence.size(), sizeof record.sentence));
  std::memcpy(record.sentence, failure.sentence.data(), record.length);
  // A comm sends two records in its life at most; any socket buffer has room for them.
  [[maybe_unused]] const auto sent =
      ::send(socket_.get(), &record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<Failure> Control::receive() {
  std::vector<Failure> failures;
  while (!is_gone()) {
    char buffer[sizeof(Record)];
    const auto received = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (received <= 0) {
      is_closed_ = true;
      break;
    }
    pending_.insert(pending_.end(), buffer, buffer + received);
    while (auto failure = take_record()) failures.push_back(*failure);
  }
  return failures;
}

std::optional<Failure> Control::take_record() {
  if (is_gone() || pending_.size() < sizeof(Record)) return std::nullopt;
  Record record;
  std::memcpy(&record, pending_.data(), sizeof record);
  pending_.erase(pending_.begin(), pending_.begin() + sizeof record);
  if (!is_valid(record)) {
    is_closed_ = true;
    return std::nullopt;
  }
  if (record.kind == kGoodbye) {
    said_goodbye_ = true;
    return std::nullopt;
  }
  return Failure{static_cast<Failure::Kind>(record.kind),
                 GlobalRank{record.peer},
                 {record.sentence, record.length}};
}

}  // namespace lrun::comm
