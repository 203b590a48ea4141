#include "trainer/comm/execution.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lrun::comm {

Execution::Execution(std::unique_ptr<Operation> operation, std::span<Peer> peers, GlobalRank rank)
    : operation_(std::move(operation)), rank_(rank) {
  const Collective& collective = operation_->collective;
  chunks_ = chunks_of(collective, rank_);
  is_one_hop_ = is_one_hop(collective);
  for (Peer& peer : peers) {
    Lane lane;
    lane.peer = &peer;
    lane.outgoing = frames_between(collective, rank_, peer.rank);
    lane.incoming = frames_between(collective, peer.rank, rank_);
    lanes_.push_back(std::move(lane));
  }
}

bool Execution::advance() {
  bool moved = false;
  for (Lane& lane : lanes_) moved |= push(lane);
  for (Lane& lane : lanes_) moved |= pull(lane);
  moved |= sum_next_chunk();
  for (Lane& lane : lanes_) lane.peer->link->ring();
  return moved;
}

bool Execution::is_complete() const {
  return summed_ == chunks_.size() && std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) {
           return l.is_sending_done() && l.is_receiving_done();
         });
}

bool Execution::push(Lane& lane) {
  bool moved = false;
  if (!lane.is_header_sent) {
    if (!push_header(lane)) return false;
    moved = true;
  }
  while (lane.sent < lane.outgoing.size() && push_frame(lane, lane.outgoing[lane.sent])) {
    ++lane.sent;
    moved = true;
  }
  return moved;
}

bool Execution::push_header(Lane& lane) {
  const Link::Bytes header = std::as_bytes(std::span(&operation_->header, 1));
  lane.is_header_sent = lane.peer->link->send({&header, 1});
  return lane.is_header_sent;
}

bool Execution::push_frame(Lane& lane, const Frame& frame) {
  if (!can_leave(frame)) return false;
  pieces_.clear();
  switch (frame.kind) {
    case Frame::Kind::Terms:
      for (const float* values : operation_->mine) {
        pieces_.push_back(std::as_bytes(
            std::span(values + frame.range.begin, static_cast<std::size_t>(frame.range.size()))));
      }
      break;
    case Frame::Kind::Values:
      pieces_.push_back(place_of(frame.range));
      break;
  }
  if (!lane.peer->link->send(pieces_)) return false;
  sent_bytes_ += bytes_of(frame, rank_);
  return true;
}

bool Execution::can_leave(const Frame& frame) const {
  return frame.kind == Frame::Kind::Terms || frame.chunk < static_cast<int>(summed_);
}

bool Execution::pull(Lane& lane) {
  bool moved = false;
  if (!lane.is_header_checked) {
    if (!pull_header(lane)) return false;
    moved = true;
  }
  while (lane.terms == nullptr && lane.received < lane.incoming.size() &&
         pull_frame(lane, lane.incoming[lane.received])) {
    moved = true;
  }
  return moved;
}

bool Execution::pull_header(Lane& lane) {
  const std::byte* bytes = lane.peer->link->front(sizeof(OperationHeader));
  if (bytes == nullptr) return false;
  OperationHeader theirs;
  std::memcpy(&theirs, bytes, sizeof theirs);
  if (const auto sentence = find_mismatch(operation_->header, rank_, theirs, lane.peer->rank)) {
    throw Mismatch(*sentence);
  }
  lane.peer->link->pop();
  lane.is_header_checked = true;
  return true;
}

bool Execution::pull_frame(Lane& lane, const Frame& frame) {
  const std::size_t bytes = bytes_of(frame, lane.peer->rank);
  switch (frame.kind) {
    case Frame::Kind::Terms:
      // Stays where it is until the terms of the other peers are there, too.
      lane.terms = lane.peer->link->front(bytes);
      if (lane.terms == nullptr) return false;
      break;
    case Frame::Kind::Values:
      if (!lane.peer->link->receive(place_of(frame.range))) return false;
      ++lane.received;
      break;
  }
  received_bytes_ += bytes;
  return true;
}

bool Execution::can_sum() const {
  if (summed_ == chunks_.size()) return false;
  return std::all_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) {
    if (is_one_hop_ && !lane.is_sending_done()) return false;
    return lane.terms != nullptr || subtrees_of(lane.peer->rank) == 0;
  });
}

bool Execution::sum_next_chunk() {
  if (!can_sum()) return false;
  const Range chunk = chunks_[summed_];
  terms_.clear();
  const auto add_mine = [&] {
    for (const float* values : operation_->mine) terms_.push_back(values + chunk.begin);
  };
  bool is_mine_added = false;
  for (const Lane& lane : lanes_) {
    if (lane.peer->rank > rank_ && !std::exchange(is_mine_added, true)) add_mine();
    const auto* values = reinterpret_cast<const float*>(lane.terms);
    for (int k = 0; k < subtrees_of(lane.peer->rank); ++k) {
      terms_.push_back(values + k * chunk.size());
    }
  }
  if (!is_mine_added) add_mine();
  operation_->sum->add(terms_, reinterpret_cast<float*>(place_of(chunk).data()), chunk.size());
  ++summed_;
  for (Lane& lane : lanes_) {
    if (std::exchange(lane.terms, nullptr) == nullptr) continue;
    lane.peer->link->pop();
    ++lane.received;
  }
  return true;
}

std::vector<GlobalRank> Execution::waiting_for() const {
  std::vector<GlobalRank> first;   // silent: neither header nor terms, or no room for ours
  std::vector<GlobalRank> second;  // values that may in turn wait for somebody silent
  for (const Lane& lane : lanes_) {
    const bool lacks_values = lane.is_header_checked && lane.received < lane.incoming.size() &&
                              lane.incoming[lane.received].kind == Frame::Kind::Values;
    if (lane.peer->link->is_blocked_sending() || (lane.is_reading() && !lacks_values)) {
      first.push_back(lane.peer->rank);
    } else if (lane.is_reading()) {
      second.push_back(lane.peer->rank);
    }
  }
  return first.empty() ? second : first;
}

const Peer* Execution::find_lost() const {
  for (const Lane& lane : lanes_) {
    // A peer that still lacks something of ours cannot have ended well.
    if (lane.peer->control.is_gone() && !lane.is_sending_done()) return lane.peer;
    // What it sent before it went arrives on the link: over TCP perhaps later than the news.
    const bool has_descriptor = lane.peer->link->descriptor() >= 0;
    const bool is_drained =
        has_descriptor ? lane.peer->link->is_closed() : lane.peer->control.is_gone();
    if (is_drained && lane.is_reading()) return lane.peer;
  }
  return nullptr;
}

short Execution::poll_events(const Peer& peer) const {
  for (const Lane& lane : lanes_) {
    if (lane.peer != &peer || peer.link->is_closed()) continue;
    const bool writes = peer.link->is_blocked_sending();
    return static_cast<short>((lane.is_reading() ? POLLIN : 0) | (writes ? POLLOUT : 0));
  }
  return 0;
}

std::string Execution::name() const {
  return "operation " + std::to_string(operation_->header.sequence) + " (" +
         describe(operation_->header) + ")";
}

int Execution::subtrees_of(GlobalRank rank) const {
  return operation_->collective.subtrees[static_cast<std::size_t>(rank.value)];
}

std::size_t Execution::bytes_of(const Frame& frame, GlobalRank sender) const {
  const auto one = static_cast<std::size_t>(frame.range.size()) *
                   static_cast<std::size_t>(operation_->collective.element_bytes);
  if (frame.kind == Frame::Kind::Values) return one;
  return one * static_cast<std::size_t>(subtrees_of(sender));
}

std::span<std::byte> Execution::place_of(Range range) const {
  const int element_bytes = operation_->collective.element_bytes;
  return {operation_->result + (range.begin - operation_->result_begin) * element_bytes,
          static_cast<std::size_t>(range.size() * element_bytes)};
}

}  // namespace lrun::comm
