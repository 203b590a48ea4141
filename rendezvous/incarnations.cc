#include "rendezvous/incarnations.h"

#include <algorithm>

namespace lrun::rendezvous {

void Incarnations::admit(const NodeId& node, Incarnation incarnation) {
  const auto known = std::find_if(living_.begin(), living_.end(),
                                  [&](const Life& life) { return life.first == node; });
  if (known == living_.end()) return remember(living_, {node, incarnation});
  if (known->second == incarnation) return;
  remember(superseded_, *known);
  known->second = incarnation;
}

void Incarnations::retire(const NodeId& node, Incarnation incarnation) {
  if (!has_left(node, incarnation)) remember(left_, {node, incarnation});
}

bool Incarnations::is_superseded(const NodeId& node, Incarnation incarnation) const {
  return std::find(superseded_.begin(), superseded_.end(), Life{node, incarnation}) !=
         superseded_.end();
}

bool Incarnations::has_left(const NodeId& node, Incarnation incarnation) const {
  return std::find(left_.begin(), left_.end(), Life{node, incarnation}) != left_.end();
}

void Incarnations::remember(std::deque<Life>& lives, Life life) {
  if (lives.size() == kLivesRememberedMax) lives.pop_front();
  lives.push_back(std::move(life));
}

}  // namespace lrun::rendezvous
