#include "trainer/comm/connector.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "trainer/comm/tcp_link.h"

namespace lrun::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kRedialInterval = 50ms;
// Unfinished connections beyond what peers need: strangers get no more.
constexpr std::size_t kStrangersMax = 64;

std::string address_key(GlobalRank rank) { return "comm/" + std::to_string(rank.value); }
constexpr const char* kNonceKey = "comm/nonce";

Nonce random_nonce() {
  Nonce nonce;
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot draw a nonce");
  }
  return nonce;
}

std::string to_hex(const Nonce& nonce) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : nonce) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Nonce from_hex(const std::string& text) {
  Nonce nonce;
  if (text.size() != 2 * nonce.size() ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw std::runtime_error("'comm/nonce' holds '" + text + "', which is no nonce");
  }
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    nonce[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return nonce;
}

}  // namespace

Connector::Connector(const Comm::Options& options, Bootstrap& bootstrap, const Doorbell& doorbell)
    : options_(options),
      bootstrap_(bootstrap),
      doorbell_(doorbell),
      until_(Clock::now() + options.connect_deadline),
      tcp_(listen_tcp(options.host)),
      unix_(listen_unix()) {
  greeting_.term = options.generation.term;
  greeting_.number = options.generation.number;
  greeting_.rank = options.rank.value;
  greeting_.world_size = options.world_size;
  for (int rank = 0; rank < options.world_size; ++rank) {
    if (rank != options.rank.value) partials_[GlobalRank{rank}];
  }
}

std::vector<Peer> Connector::connect() {
  publish_address();
  look_up_lower_ranks();
  while (!is_complete()) {
    const auto now = Clock::now();
    if (now >= until_) give_up();
    dial_due(now);
    wait_for_events();
    accept_waiting(tcp_.socket);
    accept_waiting(unix_.socket);
    advance_handshakes();
  }
  std::vector<Peer> peers;
  for (auto& [rank, partial] : partials_) {
    peers.push_back({rank, std::move(partial.link), Control(std::move(partial.control))});
  }
  return peers;
}

// Rank 0 draws the nonce of the generation; whoever can read the blackboard can present it.
void Connector::publish_address() {
  if (options_.rank.value == 0) {
    greeting_.nonce = random_nonce();
    bootstrap_.publish(kNonceKey, to_hex(greeting_.nonce));
  }
  const std::string host = options_.host.empty() ? "127.0.0.1" : options_.host;
  const std::string unix_name = options_.use_shared_memory ? unix_.name : "-";
  bootstrap_.publish(address_key(options_.rank), host + " " + std::to_string(tcp_.port) + " " +
                                                     unix_name + " " + options_.node);
}

void Connector::look_up_lower_ranks() {
  if (options_.rank.value > 0) greeting_.nonce = from_hex(look_up_text({0}, kNonceKey));
  for (int rank = 0; rank < options_.rank.value; ++rank) {
    addresses_[GlobalRank{rank}] = look_up(GlobalRank{rank});
    plan_dials(GlobalRank{rank});
    dial_due(Clock::now());
  }
}

Connector::Address Connector::look_up(GlobalRank peer) {
  const std::string text = look_up_text(peer, address_key(peer));
  std::istringstream words(text);
  Address address;
  words >> address.host >> address.port >> address.unix_name;
  if (!words || words.get() != ' ') {
    throw std::runtime_error("'" + address_key(peer) + "' holds '" + text +
                             "', which is no address");
  }
  std::getline(words, address.node);
  return address;
}

std::string Connector::look_up_text(GlobalRank owner, const std::string& key) {
  try {
    return bootstrap_.lookup(key, left());
  } catch (const DeadlineExceeded&) {
    throw DeadlineExceeded("rank " + std::to_string(owner.value) + " has not said within " +
                           std::to_string(options_.connect_deadline.count()) +
                           " ms where it can be reached ('" + key + "' is not published)");
  }
}

void Connector::plan_dials(GlobalRank peer) {
  const Address& address = addresses_.at(peer);
  const bool is_shared =
      options_.use_shared_memory && address.unix_name != "-" && address.node == options_.node;
  if (is_shared) {
    dials_.push_back({peer, Purpose::ControlAndSharedMemory});
  } else {
    dials_.push_back({peer, Purpose::Control});
    dials_.push_back({peer, Purpose::Payload});
  }
}

void Connector::dial_due(Clock::time_point now) {
  for (Dial& dial : dials_) {
    if (dial.at > now) continue;
    const Address& address = addresses_.at(dial.peer);
    Fd socket = dial.purpose == Purpose::ControlAndSharedMemory
                    ? dial_unix(address.unix_name)
                    : dial_tcp(address.host, address.port, dial.attempts);
    ++dial.attempts;
    // Until the handshake succeeds the dial stays planned, in case it has to be repeated.
    dial.at = Clock::time_point::max();
    if (!socket.is_open()) {
      dial.at = now + kRedialInterval;
      continue;
    }
    Greeting mine = greeting_;
    mine.purpose = static_cast<std::uint64_t>(dial.purpose);
    handshakes_.push_back(Handshake::dial(std::move(socket), mine, dial.peer, doorbell_));
  }
}

void Connector::accept_waiting(const Fd& listener) {
  const auto room = 2 * static_cast<std::size_t>(options_.world_size) + kStrangersMax;
  while (handshakes_.size() < room) {
    Fd socket = accept_one(listener);
    if (!socket.is_open()) return;
    handshakes_.push_back(Handshake::accept(std::move(socket), greeting_, doorbell_));
  }
}

void Connector::advance_handshakes() {
  for (Handshake& handshake : handshakes_) {
    const Handshake::State state = handshake.advance();
    if (state == Handshake::State::Done) adopt(handshake);
    if (state != Handshake::State::Failed || !handshake.is_dialler()) continue;
    for (Dial& dial : dials_) {
      if (dial.peer == handshake.peer() && dial.purpose == handshake.purpose()) {
        dial.at = Clock::now() + kRedialInterval;
      }
    }
  }
  handshakes_.remove_if([](const Handshake& handshake) { return !handshake.is_unfinished(); });
}

// A peer that dialled again, because it missed an answer, replaces its first connection.
void Connector::adopt(Handshake& handshake) {
  Partial& partial = partials_.at(handshake.peer());
  switch (handshake.purpose()) {
    case Purpose::Control:
      partial.control = handshake.take_socket();
      break;
    case Purpose::Payload:
      partial.link = std::make_unique<TcpLink>(handshake.take_socket());
      break;
    case Purpose::ControlAndSharedMemory:
      partial.control = handshake.take_socket();
      partial.link = handshake.take_link();
      break;
  }
}

void Connector::wait_for_events() {
  std::vector<pollfd> descriptors{{tcp_.socket.get(), POLLIN, 0}, {unix_.socket.get(), POLLIN, 0}};
  for (const Handshake& handshake : handshakes_) {
    descriptors.push_back({handshake.descriptor(), handshake.poll_events(), 0});
  }
  // Dials are repeated in between.
  const auto timeout = std::clamp(left(), 0ms, std::chrono::milliseconds(kRedialInterval));
  ::poll(descriptors.data(), descriptors.size(), static_cast<int>(timeout.count()));
}

bool Connector::is_complete() const {
  return std::all_of(partials_.begin(), partials_.end(),
                     [](const auto& entry) { return entry.second.is_complete(); });
}

void Connector::give_up() const {
  std::string sentence;
  for (const auto& [rank, partial] : partials_) {
    if (partial.is_complete()) continue;
    sentence += (sentence.empty() ? "rank " : ", rank ") + std::to_string(rank.value);
    if (const auto found = addresses_.find(rank); found != addresses_.end()) {
      sentence += " (at " + found->second.host + ":" + std::to_string(found->second.port) + ")";
    }
  }
  throw DeadlineExceeded(sentence + " did not connect to rank " +
                         std::to_string(options_.rank.value) + " within " +
                         std::to_string(options_.connect_deadline.count()) + " ms");
}

std::chrono::milliseconds Connector::left() const {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now()), 0ms);
}

}  // namespace lrun::comm
