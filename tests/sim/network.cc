#include "tests/sim/network.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lrun::sim {

Network::Network(Agenda& agenda, Random random, NetworkWeather weather, Ends ends)
    : agenda_(agenda), random_(random), weather_(weather), ends_(std::move(ends)) {}

Duration Network::delay() { return random_.between(weather_.delay_min, weather_.delay_max); }

CallId Network::call(const Caller& caller, Call call) {
  const CallId id = ++last_call_;
  const Duration deadline = call.deadline;
  open_.emplace(id, Open{.caller = caller, .call = std::move(call), .ticket = {}});
  agenda_.after(deadline, [this, id] { fail(id, false, "no answer within the deadline"); });
  if (random_.chance(weather_.reset)) reset(caller.process);
  if (!reaches_service(caller.node) || random_.chance(weather_.lost_request)) return id;
  agenda_.after(delay(), [this, id] { arrive(id); });
  if (random_.chance(weather_.duplicate)) repeat(open_.at(id));
  return id;
}

void Network::in_process(ProcessId process, Duration delay, std::function<void()> deed) {
  agenda_.after(delay,
                [this, process, deed = std::move(deed)] { ends_.to_process(process, deed); });
}

void Network::repeat(const Open& original) {
  const CallId id = ++last_call_;
  Open copy{.caller = original.caller, .call = original.call, .ticket = {}};
  copy.call.on_reply = [](const rendezvous::Action&) {};
  copy.call.on_failure = [](const rendezvous::Unreachable&) {};
  agenda_.after(copy.call.deadline, [this, id] { fail(id, false, ""); });
  agenda_.after(delay() * 2, [this, id] { arrive(id); });
  open_.emplace(id, std::move(copy));
}

void Network::arrive(CallId id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;  // taken back while it travelled
  if (!ends_.is_service_up()) return fail_later(id, "connection refused");
  const Ticket ticket{++last_ticket_};
  found->second.ticket = ticket;
  by_ticket_[ticket] = id;
  const rendezvous::Event event = found->second.call.event(ticket);
  ends_.to_service(event);
}

void Network::reply(Ticket ticket, const rendezvous::Action& answer) {
  const auto entry = by_ticket_.find(ticket);
  if (entry == by_ticket_.end()) return;
  const CallId id = entry->second;
  by_ticket_.erase(entry);
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  found->second.ticket.reset();
  const Caller& caller = found->second.caller;
  if (!reaches_node(caller.node) || random_.chance(weather_.lost_reply)) return;
  const ProcessId process = caller.process;
  agenda_.after(delay(), [this, id, process, answer] {
    ends_.to_process(process, [this, id, answer] {
      const auto open = open_.find(id);
      if (open == open_.end()) return;
      const auto on_reply = std::move(open->second.call.on_reply);
      open_.erase(open);
      on_reply(answer);
    });
  });
}

void Network::fail(CallId id, bool host_answered, const std::string& sentence) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const ProcessId process = found->second.caller.process;
  ends_.to_process(process, [this, id, host_answered, sentence] {
    const auto open = open_.find(id);
    if (open == open_.end()) return;
    const Open ended = std::move(open->second);
    open_.erase(open);
    end_at_service(ended);
    ended.call.on_failure({.host_answered = host_answered, .sentence = sentence});
  });
}

void Network::fail_later(CallId id, const std::string& sentence) {
  const auto found = open_.find(id);
  if (found == open_.end() || !reaches_node(found->second.caller.node)) return;
  agenda_.after(delay(), [this, id, sentence] { fail(id, true, sentence); });
}

// The service hears that the caller of a held call is gone.
void Network::end_at_service(const Open& open) {
  if (!open.ticket) return;
  const Ticket ticket = *open.ticket;
  if (!reaches_service(open.caller.node)) return;
  agenda_.after(delay(), [this, ticket] {
    if (by_ticket_.erase(ticket) == 0 || !ends_.is_service_up()) return;
    ends_.to_service(rendezvous::CallEnded{ticket});
  });
}

void Network::cancel(CallId id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const Open ended = std::move(found->second);
  open_.erase(found);
  end_at_service(ended);
}

void Network::process_died(ProcessId process) {
  std::vector<CallId> its;
  for (const auto& [id, open] : open_) {
    if (open.caller.process == process) its.push_back(id);
  }
  for (const CallId id : its) cancel(id);
}

void Network::service_died() {
  by_ticket_.clear();
  for (auto& [id, open] : open_) {
    if (!open.ticket) continue;
    open.ticket.reset();
    fail_later(id, "connection reset by peer");
  }
}

void Network::reset(ProcessId process) {
  for (auto& [id, open] : open_) {
    if (open.caller.process != process) continue;
    end_at_service(open);
    open.ticket.reset();
    fail_later(id, "connection reset by peer");
  }
}

void Network::cut(const std::string& node, Direction direction) {
  if (direction != Direction::FromService) cut_up_.insert(node);
  if (direction != Direction::ToService) cut_down_.insert(node);
}

void Network::mend(const std::string& node) {
  cut_up_.erase(node);
  cut_down_.erase(node);
}

std::size_t Network::open_calls(ProcessId process) const {
  return static_cast<std::size_t>(std::count_if(
      open_.begin(), open_.end(),
      [process](const auto& entry) { return entry.second.caller.process == process; }));
}

}  // namespace lrun::sim
