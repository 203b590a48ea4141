#include "rendezvous/blackboard.h"

#include <utility>

namespace lrun::rendezvous {
namespace {

Refusal stale(Generation asked, Generation served) {
  return {RefuseReason::StaleGeneration, "generation " + to_string(asked) +
                                             " is over or not known here; the current one is " +
                                             to_string(served) + "; join again"};
}

Refusal bad_size(const std::string& what, std::size_t size, std::size_t size_max) {
  return {RefuseReason::BadRequest, what + " of " + std::to_string(size) +
                                        " bytes; accepted are at most " + std::to_string(size_max)};
}

Refusal too_many(const std::string& what, std::size_t count_max) {
  return {RefuseReason::BadRequest, "the blackboard holds at most " + std::to_string(count_max) +
                                        " " + what +
                                        " in a generation; share larger things through files"};
}

}  // namespace

void Blackboard::open(Generation generation, std::vector<Action>& actions) {
  refuse_waiting(stale(generation_, generation), actions);
  generation_ = generation;
  values_.clear();
  bytes_ = 0;
}

void Blackboard::close(const Refusal& refusal, std::vector<Action>& actions) {
  refuse_waiting(refusal, actions);
  values_.clear();
  bytes_ = 0;
  closed_ = refusal;
}

void Blackboard::publish(Ticket ticket, const PublishRequest& request,
                         std::vector<Action>& actions) {
  std::optional<Refusal> refusal = refusal_for(request.generation, request.key);
  if (!refusal) refusal = refusal_for_value(request);
  if (!refusal) {
    bytes_ = size_after(request);
    values_[request.key] = request.value;
  }
  actions.push_back(Acknowledge{ticket, refusal});
  if (!refusal) answer_waiting(request.key, actions);
}

void Blackboard::lookup(Ticket ticket, const LookupRequest& request, Instant ask_again_at,
                        std::vector<Action>& actions) {
  if (auto refusal = refusal_for(request.generation, request.key)) {
    actions.push_back(AnswerLookup{ticket, *std::move(refusal)});
    return;
  }
  if (const auto found = values_.find(request.key); found != values_.end()) {
    actions.push_back(AnswerLookup{ticket, found->second});
    return;
  }
  if (waiting_.size() >= kWaitingLookupsMax) {
    actions.push_back(AnswerLookup{ticket, too_many("waiting lookups", kWaitingLookupsMax)});
    return;
  }
  waiting_[ticket] = {request.key, ask_again_at};
  waiting_by_key_[request.key].insert(ticket);
  waiting_by_deadline_.insert({ask_again_at, ticket});
}

bool Blackboard::forget(Ticket ticket) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return false;
  const auto& [key, ask_again_at] = found->second;
  const auto same_key = waiting_by_key_.find(key);
  same_key->second.erase(ticket);
  if (same_key->second.empty()) waiting_by_key_.erase(same_key);
  waiting_by_deadline_.erase({ask_again_at, ticket});
  waiting_.erase(found);
  return true;
}

void Blackboard::pass_time(Instant now, std::vector<Action>& actions) {
  while (!waiting_by_deadline_.empty() && waiting_by_deadline_.begin()->first <= now) {
    const Ticket ticket = waiting_by_deadline_.begin()->second;
    actions.push_back(AnswerLookup{ticket, AskAgain{}});
    forget(ticket);
  }
}

std::optional<Instant> Blackboard::next_deadline() const {
  if (waiting_by_deadline_.empty()) return std::nullopt;
  return waiting_by_deadline_.begin()->first;
}

std::optional<Refusal> Blackboard::refusal_for(Generation generation,
                                               const std::string& key) const {
  if (closed_) return closed_;
  if (is_none(generation) || generation != generation_) return stale(generation, generation_);
  if (key.empty()) return Refusal{RefuseReason::BadRequest, "empty key; give it a name"};
  if (key.size() > kKeyBytesMax) return bad_size("key", key.size(), kKeyBytesMax);
  return std::nullopt;
}

std::optional<Refusal> Blackboard::refusal_for_value(const PublishRequest& request) const {
  if (request.value.size() > kValueBytesMax) {
    return bad_size("value", request.value.size(), kValueBytesMax);
  }
  if (values_.size() >= kKeysMax && values_.count(request.key) == 0) {
    return too_many("keys", kKeysMax);
  }
  if (size_after(request) > kBlackboardBytesMax) return too_many("bytes", kBlackboardBytesMax);
  return std::nullopt;
}

std::size_t Blackboard::size_after(const PublishRequest& request) const {
  const auto old = values_.find(request.key);
  if (old == values_.end()) return bytes_ + request.key.size() + request.value.size();
  return bytes_ - old->second.size() + request.value.size();
}

void Blackboard::answer_waiting(const std::string& key, std::vector<Action>& actions) {
  const auto found = waiting_by_key_.find(key);
  if (found == waiting_by_key_.end()) return;
  const std::set<Ticket> tickets = found->second;
  for (const Ticket ticket : tickets) {
    actions.push_back(AnswerLookup{ticket, values_.at(key)});
    forget(ticket);
  }
}

void Blackboard::refuse_waiting(const Refusal& refusal, std::vector<Action>& actions) {
  for (const auto& [ticket, waiting] : waiting_) {
    actions.push_back(AnswerLookup{ticket, refusal});
  }
  waiting_.clear();
  waiting_by_key_.clear();
  waiting_by_deadline_.clear();
}

}  // namespace lrun::rendezvous
