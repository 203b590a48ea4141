#include "agent/supervisor.h"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <utility>

#include "agent/supervisor_impl.h"

namespace lrun::agent {
namespace {

constexpr RetryBackoff::Limits kJoinBackoff{.first = std::chrono::milliseconds(200),
                                            .longest = std::chrono::seconds(5)};

std::string_view word(RejoinReason reason) {
  switch (reason) {
    case RejoinReason::GenerationEnded:
      return "the generation ended";
    case RejoinReason::NodeJoined:
      return "a node joined";
    case RejoinReason::NodeLost:
      return "a node was lost";
    case RejoinReason::NodeDrained:
      return "a node was drained";
    case RejoinReason::WorkerFailed:
      return "a worker of another node failed";
    case RejoinReason::Unknown:
      return "the rendezvous asks for it";
  }
  return "";
}

}  // namespace

Supervisor::Supervisor(Config config, Instant now)
    : impl_(std::make_unique<Impl>(std::move(config), now)) {}
Supervisor::~Supervisor() = default;
Supervisor::Supervisor(Supervisor&&) noexcept = default;
Supervisor& Supervisor::operator=(Supervisor&&) noexcept = default;

std::vector<Action> Supervisor::step(Instant now, const Event& event) {
  assert(now >= impl_->now);
  impl_->now = now;
  impl_->actions.clear();
  if (impl_->state != AgentState::Done) {
    std::visit([this](const auto& what) { impl_->on(what); }, event);
    impl_->settle();
    impl_->pass_deadlines();
  }
  return std::exchange(impl_->actions, {});
}

std::optional<Instant> Supervisor::next_deadline() const { return impl_->next_deadline(); }
AgentState Supervisor::state() const { return impl_->state; }
const std::optional<Assignment>& Supervisor::assignment() const { return impl_->assignment; }

std::vector<WorkerView> Supervisor::workers() const {
  std::vector<WorkerView> views;
  for (const Worker& worker : impl_->group.all()) {
    views.push_back({.local_rank = worker.local_rank,
                     .global_rank = worker.global_rank,
                     .pid = worker.pid,
                     .is_alive = worker.stage == Stage::Alive,
                     .is_live = worker.is_live,
                     .progress = worker.progress,
                     .last_heard = worker.last_heard});
  }
  return views;
}

Supervisor::Impl::Impl(Config told, Instant start)
    : config(std::move(told)),
      now(start),
      state_since(start),
      group(config.stall_timeout),
      contact(config.heartbeat, config.lease, start),
      policy({.max_restarts = config.max_restarts, .crash_loop_limit = config.crash_loop_limit}),
      join_backoff(config.facts.incarnation.value, kJoinBackoff),
      assigned_at(start) {}

// --- events ------------------------------------------------------------------------------------

void Supervisor::Impl::on(const Started&) {
  if (has_started) return;
  has_started = true;
  contact = ServiceContact(config.heartbeat, config.lease, now);
  state_since = now;
  send_join();
}

void Supervisor::Impl::on(const Assigned& event) {
  contact.heard(now);
  if (state != AgentState::Joining && state != AgentState::Reforming) return;
  if (event.assignment.generation <= last_seen) return;
  const bool same_slots = static_cast<std::size_t>(event.assignment.slots) == group.all().size();
  if (state == AgentState::Reforming && !same_slots) {
    return stop(StopCause::MembershipChanged, "the number of slots changed");
  }
  const bool is_reform = state == AgentState::Reforming;
  accept(event.assignment);
  if (is_reform) {
    assign_survivors();
  } else {
    group.prepare(*assignment);
    for (Worker& worker : group.all()) spawn(worker);
  }
  set_state(AgentState::Starting, "generation " + to_string(assignment->generation));
}

void Supervisor::Impl::on(const JoinFailed& event) {
  contact.heard(now);
  if (state != AgentState::Joining && state != AgentState::Reforming) return;
  if (!is_retryable(event.refusal.reason)) return refused(event.refusal);
  rejoin_at = now + join_backoff.next();
  if (state == AgentState::Joining) set_state(AgentState::Backoff, event.refusal.sentence);
}

void Supervisor::Impl::on(const DirectiveReceived& event) {
  contact.heard(now);
  const auto* rejoin = std::get_if<Rejoin>(&event.directive);
  if (rejoin != nullptr && is_old_news(*rejoin, event.about)) return;
  std::visit([this](const auto& order) { follow(order); }, event.directive);
}

// The order crossed the assignment that it led to.
bool Supervisor::Impl::is_old_news(const Rejoin& order, std::optional<Generation> about) const {
  const std::optional<Assignment> current = running();
  const Generation named = current ? current->generation : Generation{};
  if (about && *about != named) return true;
  return current && !is_none(order.ended) && order.ended < named;
}

void Supervisor::Impl::on(const HeartbeatAnswered& event) {
  is_fenced = false;
  if (contact.answered(now, event)) republish();
}

void Supervisor::Impl::on(const ServiceUnreachable& event) {
  contact.unreachable(now, event);
  if (event.is_final) give_up();
}

// --- directives --------------------------------------------------------------------------------

void Supervisor::Impl::follow(const Rejoin& order) {
  const std::string reason(word(order.reason));
  switch (state) {
    case AgentState::Joining:
      return send_join();
    case AgentState::Reforming:
      return verdict_at ? judge_as_told(order) : send_join();
    case AgentState::Starting:
    case AgentState::Running:
      actions.emplace_back(ReformStarted{StopCause::MembershipChanged});
      if (!group.has_survivors()) return stop(StopCause::MembershipChanged, reason);
      reform(reason);
      return send_join();
    case AgentState::Stopping:
      if (verdict_at) judge_as_told(order);
      return;
    case AgentState::Finished:
      return begin_join(reason);
    case AgentState::Backoff:
    case AgentState::Done:
      return;
  }
}

// A drained node ends as one that was stopped by SIGTERM, whoever asked for it.
void Supervisor::Impl::follow(const DrainNode&) {
  if (!drain_signal) drain(SIGTERM, "the rendezvous drains this node");
}

void Supervisor::Impl::follow(const StopJob& order) {
  closed = order;
  refusal.reset();
  switch (state) {
    case AgentState::Joining:
    case AgentState::Backoff:
    case AgentState::Finished:
      return stopped();
    case AgentState::Starting:
    case AgentState::Running:
    case AgentState::Reforming:
    case AgentState::Stopping:
      return stop(StopCause::Closed, "the job is over");
    case AgentState::Done:
      return;
  }
}

// --- membership --------------------------------------------------------------------------------

void Supervisor::Impl::accept(const Assignment& news) {
  assignment = news;
  last_seen = news.generation;
  assigned_at = now;
  restarts_spent = std::max(restarts_spent, news.restarts_spent);
  failure.reset();
  announced.reset();
  causes.clear();
  verdict_at.reset();
  rejoin_at.reset();
  published.clear();
  is_fenced = false;
  join_backoff.reset();
  contact.assigned(now);
}

void Supervisor::Impl::assign_survivors() {
  for (Worker& worker : group.all()) {
    group.place(worker, *assignment);
    if (worker.is_survivor()) {
      actions.emplace_back(
          TellWorker{worker.local_rank,
                     channel::NewAssignment{.generation = assignment->generation,
                                            .global_rank = worker.global_rank,
                                            .world_size = assignment->world_size,
                                            .group_rank = assignment->group_rank,
                                            .group_world_size = assignment->group_world_size,
                                            .master_addr = assignment->master_addr,
                                            .master_port = assignment->master_port,
                                            .restart_count = assignment->restarts_spent}});
    } else if (worker.is_running()) {
      worker.needs_spawn = true;
    } else {
      spawn(worker);
    }
  }
}

void Supervisor::Impl::refused(const Refusal& why) {
  // Closed after this node reported a failure: that failure is the news, not the refusal.
  if (!failure || why.reason != RefuseReason::Closed) refusal = why;
  if (!closed) closed = StopJob{.outcome = Outcome::Failed, .cause = failure};
  if (state == AgentState::Reforming) return stop(StopCause::Closed, why.sentence);
  stopped();
}

// The service cannot be reached, for good or for too long. Running workers go on without it.
void Supervisor::Impl::give_up() {
  const std::string sentence =
      contact.complaint().empty() ? "the rendezvous is silent" : contact.complaint();
  switch (state) {
    case AgentState::Joining:
    case AgentState::Backoff:
      return refused(Refusal{.reason = RefuseReason::JoinTimedOut, .sentence = sentence});
    case AgentState::Reforming:
      return stop(StopCause::LeaseLost, sentence);
    case AgentState::Finished:
      return finish(Finish{.outcome = Outcome::Succeeded, .cause = {}}, sentence);
    case AgentState::Starting:
    case AgentState::Running:
    case AgentState::Stopping:
    case AgentState::Done:
      return;
  }
}

void Supervisor::Impl::begin_join(std::string reason) {
  set_state(AgentState::Joining, std::move(reason));
  send_join();
}

void Supervisor::Impl::send_join() {
  rejoin_at.reset();
  actions.emplace_back(Join{JoinRequest{.facts = config.facts,
                                        .run_id = config.run_id,
                                        .last_seen = last_seen,
                                        .restarts_spent = restarts_spent,
                                        .failure = failure}});
}

std::optional<Assignment> Supervisor::Impl::running() const {
  switch (state) {
    case AgentState::Starting:
    case AgentState::Running:
    case AgentState::Finished:
    case AgentState::Stopping:
      return assignment;
    case AgentState::Reforming:
      return verdict_at ? assignment : std::nullopt;
    case AgentState::Joining:
    case AgentState::Backoff:
    case AgentState::Done:
      return std::nullopt;
  }
  return std::nullopt;
}

void Supervisor::Impl::send_heartbeat() {
  contact.heartbeat_sent(now);
  actions.emplace_back(SendHeartbeat{HeartbeatRequest{.facts = config.facts,
                                                      .run_id = config.run_id,
                                                      .running = running(),
                                                      .state = state,
                                                      .restarts_spent = restarts_spent,
                                                      .progress = group.progress(),
                                                      .failure = announced}});
}

// After a restart the service's blackboard is empty.
void Supervisor::Impl::republish() {
  if (!running()) return;
  for (const auto& [key, entry] : published) {
    actions.emplace_back(Publish{
        entry.first,
        PublishRequest{.generation = assignment->generation, .key = key, .value = entry.second}});
  }
}

void Supervisor::Impl::set_state(AgentState to, std::string reason) {
  if (to == state) return;
  actions.emplace_back(StateChanged{.from = state, .to = to, .reason = std::move(reason)});
  state = to;
  state_since = now;
}

}  // namespace lrun::agent
