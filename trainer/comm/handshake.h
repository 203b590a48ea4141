// One connection that is being set up: both ends prove that they belong to the generation before
// either trusts the other.
//
// Owns the socket until it is taken. Never blocks: advance() does what can be done now. Used by the
// thread that connects.
//
//   dialler                                   acceptor
//   greeting ────────────────────────────────►  wrong nonce, version, world: closed
//   wrong: closed  ◄──── greeting (+ descriptors when the memory is shared)
//   greeting + descriptors (only when shared) ─►
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/fd.h"
#include "proto/ids.h"
#include "trainer/comm/doorbell.h"
#include "trainer/comm/link.h"

namespace lrun::comm {

using Nonce = std::array<std::uint8_t, 16>;

// What a connection is for. Over TCP a peer has one of each; within a node one socket is the
// control connection and brings the shared memory of the link.
enum class Purpose : std::uint32_t { Control, Payload, ControlAndSharedMemory };

struct Greeting {
  std::uint64_t magic = 0x4c52554e48454c4f;  // "LRUNHELO"
  std::uint64_t version = 1;
  std::uint64_t term = 0;
  std::uint64_t number = 0;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  Nonce nonce = {};
  std::uint64_t purpose = 0;
};
static_assert(std::has_unique_object_representations_v<Greeting>, "no padding on the wire");

class Handshake {
 public:
  enum class State { Greeting, Descriptors, Done, Failed };

  // `mine` says who we are and, when dialling, what for. `doorbell`: this rank's own; outlives
  // this.
  static Handshake dial(Fd socket, const Greeting& mine, GlobalRank peer, const Doorbell& doorbell);
  static Handshake accept(Fd socket, const Greeting& mine, const Doorbell& doorbell);

  State advance();

  bool is_unfinished() const { return state_ == State::Greeting || state_ == State::Descriptors; }
  GlobalRank peer() const { return peer_; }
  Purpose purpose() const { return purpose_; }
  bool is_dialler() const { return is_dialler_; }
  int descriptor() const { return socket_.get(); }
  // POLLIN or POLLOUT.
  short poll_events() const;

  // Once Done: the socket, and the link when the memory is shared.
  Fd take_socket() { return std::move(socket_); }
  std::unique_ptr<Link> take_link() { return std::move(link_); }

 private:
  Handshake(Fd socket, const Greeting& mine, const Doorbell& doorbell, bool is_dialler);

  bool send_greeting(bool with_descriptors);
  // A complete and trustworthy greeting has arrived; nothing while it is incomplete.
  std::optional<bool> receive_greeting();
  bool is_trusted(const Greeting& theirs) const;
  bool make_link();
  State after_greeting();
  State fail();

  Fd socket_;
  Greeting mine_;
  const Doorbell* doorbell_;
  bool is_dialler_ = false;
  bool is_greeting_sent_ = false;
  State state_ = State::Greeting;
  GlobalRank peer_{-1};  // expected when dialling, learnt when accepting
  Purpose purpose_ = Purpose::Control;
  std::vector<std::byte> received_;
  std::vector<Fd> descriptors_;
  std::optional<SharedMemory> incoming_;
  std::unique_ptr<Link> link_;
};

}  // namespace lrun::comm
