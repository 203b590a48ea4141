// Connects one rank to all others: addresses through the bootstrap, then one handshake a
// connection, all at once under one deadline.
//
// Owns listeners and unfinished connections. Higher ranks dial lower ones. Used once, by the thread
// that calls Comm::connect.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/comm/handshake.h"
#include "trainer/comm/peer.h"
#include "trainer/comm/socket.h"

namespace lrun::comm {

class Connector {
 public:
  // `doorbell`: this rank's; outlives the connector.
  Connector(const Comm::Options& options, Bootstrap& bootstrap, const Doorbell& doorbell);

  // All other ranks, in order. Throws DeadlineExceeded that names the missing ones.
  std::vector<Peer> connect();

 private:
  using Clock = std::chrono::steady_clock;

  struct Address {
    std::string host;
    int port = 0;
    std::string unix_name;  // "-": no shared memory wanted
    std::string node;
  };
  // What there is of a peer so far.
  struct Partial {
    Fd control;
    std::unique_ptr<Link> link;
    bool is_complete() const { return control.is_open() && link; }
  };
  // A connection to dial (again) at its time.
  struct Dial {
    GlobalRank peer;
    Purpose purpose = Purpose::Control;
    Clock::time_point at = {};
    int attempts = 0;
  };

  void publish_address();
  void look_up_lower_ranks();
  Address look_up(GlobalRank peer);
  std::string look_up_text(GlobalRank owner, const std::string& key);
  void plan_dials(GlobalRank peer);
  void dial_due(Clock::time_point now);
  void accept_waiting(const Fd& listener);
  void advance_handshakes();
  void adopt(Handshake& handshake);
  void wait_for_events();
  bool is_complete() const;
  [[noreturn]] void give_up() const;
  std::chrono::milliseconds left() const;

  const Comm::Options& options_;
  Bootstrap& bootstrap_;
  const Doorbell& doorbell_;
  const Clock::time_point until_;
  TcpListener tcp_;
  UnixListener unix_;
  Greeting greeting_;
  std::map<GlobalRank, Address> addresses_;  // of lower ranks
  std::map<GlobalRank, Partial> partials_;
  std::vector<Dial> dials_;
  std::list<Handshake> handshakes_;
};

}  // namespace lrun::comm
