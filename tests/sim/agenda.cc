#include "tests/sim/agenda.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lrun::sim {

bool Agenda::is_later(const Entry& one, const Entry& other) {
  return one.due != other.due ? one.due > other.due : one.order > other.order;
}

void Agenda::after(Duration delay, std::function<void()> deed) {
  assert(delay >= Duration::zero());
  heap_.push_back({.due = now_ + delay, .order = entered_++, .deed = std::move(deed)});
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

std::optional<Instant> Agenda::next() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().due;
}

void Agenda::go_to(Instant time) {
  assert(time >= now_);
  assert(heap_.empty() || heap_.front().due >= time);
  now_ = time;
}

bool Agenda::run_one() {
  if (heap_.empty() || heap_.front().due > now_) return false;
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  const std::function<void()> deed = std::move(heap_.back().deed);
  heap_.pop_back();
  deed();
  return true;
}

}  // namespace lrun::sim
