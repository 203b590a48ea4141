// Carries out one operation: moves frames between the caller's buffers and the links, and sums.
//
// Owns the progress of the operation on every link. Never blocks: advance() does what can be done
// now. Used by the communication thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/errors.h"
#include "trainer/comm/operation.h"
#include "trainer/comm/peer.h"

namespace lrun::comm {

class Execution {
 public:
  // `peers` outlive the execution.
  Execution(std::unique_ptr<Operation> operation, std::span<Peer> peers, GlobalRank rank);

  // True when something moved. Throws Mismatch.
  bool advance();
  bool is_complete() const;

  // The peers whose next move this rank waits for; those that hold up others first.
  std::vector<GlobalRank> waiting_for() const;
  // The first peer that is gone although this operation still needs it, or null. Meaningful after
  // advance() moved nothing: then everything that peer had sent has been taken.
  const Peer* find_lost() const;

  // What to poll the peer's descriptor for (POLLIN, POLLOUT); 0: nothing.
  short poll_events(const Peer& peer) const;

  const Operation& operation() const { return *operation_; }
  // "operation 17 (barrier)", for sentences.
  std::string name() const;
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  // The operation on one link: the header, then frames, in each direction.
  struct Lane {
    Peer* peer = nullptr;
    bool is_header_sent = false;
    bool is_header_checked = false;
    std::vector<Frame> outgoing;
    std::vector<Frame> incoming;
    std::size_t sent = 0;
    std::size_t received = 0;
    const std::byte* terms = nullptr;  // the incoming frame that waits for those of other peers

    bool is_sending_done() const { return is_header_sent && sent == outgoing.size(); }
    bool is_receiving_done() const { return is_header_checked && received == incoming.size(); }
    bool is_reading() const { return !is_receiving_done() && terms == nullptr; }
  };

  bool push(Lane& lane);
  bool pull(Lane& lane);
  bool push_header(Lane& lane);
  bool pull_header(Lane& lane);
  bool push_frame(Lane& lane, const Frame& frame);
  bool pull_frame(Lane& lane, const Frame& frame);
  bool sum_next_chunk();
  bool can_sum() const;
  bool can_leave(const Frame& frame) const;
  int subtrees_of(GlobalRank rank) const;
  std::size_t bytes_of(const Frame& frame, GlobalRank sender) const;
  std::span<std::byte> place_of(Range range) const;

  std::unique_ptr<Operation> operation_;
  GlobalRank rank_;
  std::vector<Lane> lanes_;  // in the order of peers: by rank
  std::vector<Range> chunks_;
  std::size_t summed_ = 0;  // chunks
  bool is_one_hop_ = false;
  std::vector<Link::Bytes> pieces_;
  std::vector<const float*> terms_;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t received_bytes_ = 0;
};

}  // namespace lrun::comm
