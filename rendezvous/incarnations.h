// Which lives of a node are over for good.
//
// Owns the order in which incarnations of each node were admitted, and who has left. Pure. Called
// by the state machine, so that a late message of an old life changes nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "proto/ids.h"

namespace lrun::rendezvous {

// Enough for every node of a large group to have had several lives; older ones are forgotten.
inline constexpr std::size_t kLivesRememberedMax = 8192;

class Incarnations {
 public:
  // The node lives with this incarnation from now on; its earlier ones are over.
  void admit(const NodeId& node, Incarnation incarnation);
  // The agent has said that it goes and does not return.
  void retire(const NodeId& node, Incarnation incarnation);

  bool is_superseded(const NodeId& node, Incarnation incarnation) const;
  bool has_left(const NodeId& node, Incarnation incarnation) const;

 private:
  using Life = std::pair<NodeId, Incarnation>;
  static void remember(std::deque<Life>& lives, Life life);

  std::deque<Life> living_;  // at most one per node
  std::deque<Life> superseded_;
  std::deque<Life> left_;
};

}  // namespace lrun::rendezvous
