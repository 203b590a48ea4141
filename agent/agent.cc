#include "agent/agent.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cassert>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent_log.h"
#include "agent/failure_report.h"
#include "agent/metrics.h"
#include "agent/port_reservation.h"
#include "agent/rendezvous_calls.h"
#include "agent/workers.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

// Failed workers kept for the report: one per slot is enough, plus those of a late second failure.
constexpr std::size_t kFailedWorkersMax = 256;

Instant now() { return std::chrono::steady_clock::now(); }

std::optional<ReformCause> reform_cause(GenerationReason reason) {
  switch (reason) {
    case GenerationReason::NodeJoined:
      return ReformCause::NodeJoined;
    case GenerationReason::NodeLost:
      return ReformCause::NodeLost;
    case GenerationReason::Drained:
      return ReformCause::Drained;
    case GenerationReason::WorkerFailed:
    case GenerationReason::Stalled:
      return ReformCause::WorkerFailed;
    case GenerationReason::Start:
      return std::nullopt;
  }
  return std::nullopt;
}

// A refusal that means: this node is no longer part of the job, whatever runs here.
bool ends_membership(RefuseReason reason) {
  return reason == RefuseReason::Closed || reason == RefuseReason::Superseded ||
         reason == RefuseReason::WrongRun;
}

}  // namespace

struct Agent::Impl : std::enable_shared_from_this<Agent::Impl> {
  Impl(boost::asio::io_context& the_loop, AgentOptions the_options, rendezvous::Link& link,
       Metrics* the_metrics, std::function<void(const Finish&)> the_on_finish)
      : loop(the_loop),
        options(std::move(the_options)),
        metrics(the_metrics),
        on_finish(std::move(the_on_finish)),
        port(reserve_port(options.config.facts)),
        supervisor(options.config, now()),
        output(loop, options.output,
               [this](Stream stream, std::size_t bytes) {
                 if (metrics) metrics->count_dropped(stream, bytes);
               }),
        calls(loop, link, options.config.facts.incarnation.value,
              {.on_event = [this](const Event& event) { deliver(event); },
               .on_refusal = [this](const Refusal& refusal) { refused(refusal); },
               .on_heartbeat =
                   [this](HeartbeatResult result) {
                     if (metrics) metrics->count_heartbeat(result);
                   }}),
        timer(loop) {}

  void hold(Keeper keeper) {
    WorkerOptions worker_options{.command = options.command,
                                 .base_environment = options.base_environment,
                                 .signals_to_handle = options.signals_to_handle};
    workers.emplace(loop, std::move(worker_options), std::move(keeper), output,
                    WorkerCallbacks{.on_event = [this](const Event& event) { deliver(event); },
                                    .on_end = [this](WorkerEnd end) { ended(std::move(end)); }});
  }

  // Written into the facts that the supervisor sends with every call.
  static std::optional<PortReservation> reserve_port(NodeFacts& facts) {
    if (facts.master_port != 0) return std::nullopt;
    PortReservation reservation;
    facts.master_port = reservation.port();
    return reservation;
  }

  // --- the heart ---------------------------------------------------------------------------------

  // Events come one at a time, from the loop; an action never leads back here.
  void deliver(const Event& event) {
    assert(!is_stepping);
    is_stepping = true;
    observe(event);
    for (const Action& action : supervisor.step(now(), event)) {
      std::visit([this](const auto& what) { perform(what); }, action);
    }
    is_stepping = false;
    update_metrics();
    arm_timer();
  }

  void deliver_later(Event event) {
    boost::asio::post(loop, [weak = weak_from_this(), event = std::move(event)] {
      if (const auto self = weak.lock()) self->deliver(event);
    });
  }

  void arm_timer() {
    const std::optional<Instant> deadline = supervisor.next_deadline();
    if (!deadline) {
      timer.cancel();
      return;
    }
    timer.expires_at(*deadline);
    timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->deliver(TimePassed{});
    });
  }

  // --- what the world says beside the supervisor
  // --------------------------------------------------

  void observe(const Event& event) {
    if (const auto* news = std::get_if<Assigned>(&event)) {
      agent_log::assigned(news->assignment);
      calls.enter_generation(news->assignment.generation);
      note_new_group(news->assignment);
    } else if (const auto* spawned = std::get_if<WorkerSpawned>(&event)) {
      for (const WorkerEnv& worker : spawning) {
        if (worker.local_rank == spawned->local_rank) agent_log::worker_started(*spawned, worker);
      }
    } else if (const auto* garbled = std::get_if<WorkerGarbled>(&event)) {
      log::warn("worker_garbled", {{"generation", to_string(generation())},
                                   {"local_rank", garbled->local_rank.value},
                                   {"reason", garbled->reason}});
    } else if (const auto* failed = std::get_if<JoinFailed>(&event)) {
      agent_log::refused(failed->refusal, "join");
    }
  }

  void note_new_group(const Assignment& assignment) {
    failed_workers.clear();
    if (!std::exchange(awaits_reform_reason, false) || !metrics) return;
    if (const auto cause = reform_cause(assignment.reason)) metrics->count_reform(*cause);
  }

  void ended(WorkerEnd end) {
    agent_log::worker_exited(end, generation());
    if (metrics) metrics->count_exit(end.details.status, end.was_signalled);
    if (!end.details.status.is_success() && failed_workers.size() < kFailedWorkersMax) {
      failed_workers.push_back(std::move(end.details));
    }
    deliver(std::move(end.event));
  }

  // While it joins, the answer to Join decides.
  void refused(const Refusal& refusal) {
    const AgentState state = supervisor.state();
    const bool is_joining = state == AgentState::Joining || state == AgentState::Reforming ||
                            state == AgentState::Backoff || state == AgentState::Done;
    if (is_joining) return;
    if (std::exchange(last_refusal, refusal.sentence) != refusal.sentence) {
      agent_log::refused(refusal, "heartbeat or watch");
    }
    if (!ends_membership(refusal.reason)) return;
    deliver(DirectiveReceived{.directive =
                                  StopJob{.outcome = Outcome::Failed,
                                          .cause = FirstCause{.kind = FailureKind::Refused,
                                                              .node = options.config.facts.node,
                                                              .global_rank = std::nullopt,
                                                              .local_rank = std::nullopt,
                                                              .sentence = refusal.sentence}}});
  }

  // --- deeds -------------------------------------------------------------------------------------

  void perform(const Join& action) { calls.join(action.request); }
  void perform(const SendHeartbeat& action) { calls.heartbeat(action.request); }
  void perform(const Leave& action) { calls.leave(action.request); }
  void perform(const SignalWorker& action) { workers->signal(action); }
  void perform(const TellWorker& action) { workers->tell(action); }
  void perform(const Publish& action) { calls.publish(action.request); }
  void perform(const Lookup& action) { calls.lookup(action.local_rank, action.request); }

  void perform(const SpawnWorker& action) {
    std::erase_if(spawning,
                  [&](const WorkerEnv& worker) { return worker.local_rank == action.local_rank; });
    spawning.push_back(action.environment);
    workers->spawn(action);
  }

  void perform(const StateChanged& action) { agent_log::state_changed(action, generation()); }
  void perform(const FailureSeen& action) { agent_log::failure_seen(action, generation()); }

  void perform(const RestartStarted& action) {
    if (metrics) metrics->count_restart(action.kind);
  }

  // Which change it was is known with the next assignment, except for the own lease.
  void perform(const ReformStarted& action) {
    const bool is_own = action.cause == StopCause::LeaseLost;
    awaits_reform_reason = !is_own;
    if (is_own && metrics) metrics->count_reform(ReformCause::LeaseLost);
  }

  // Nothing runs any more; the last calls, the last processes, the last lines, then the word.
  void perform(const Finish& action) {
    agent_log::finished(action);
    finish = action;
    calls.end([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->workers->end();
      self->output.flush([weak] {
        const auto again = weak.lock();
        if (again) again->on_finish(*again->finish);
      });
    });
  }

  // --- questions ---------------------------------------------------------------------------------

  Generation generation() const {
    return supervisor.assignment() ? supervisor.assignment()->generation : Generation{};
  }

  void update_metrics() {
    if (metrics) metrics->update(now(), supervisor.state(), supervisor.workers());
  }

  std::string report() const {
    const bool is_failure =
        finish && (finish->outcome == Outcome::Failed || finish->outcome == Outcome::NoProgress);
    if (!is_failure) return {};
    return to_text({.program = options.program,
                    .host = options.output.host,
                    .first_cause = finish->cause,
                    .workers = failed_workers,
                    .log_folder = options.output.run_folder});
  }

  boost::asio::io_context& loop;
  AgentOptions options;
  Metrics* metrics;
  std::function<void(const Finish&)> on_finish;
  std::optional<PortReservation> port;
  Supervisor supervisor;
  Output output;
  std::optional<Workers> workers;
  RendezvousCalls calls;
  boost::asio::steady_timer timer;
  std::vector<WorkerEnv> spawning;           // last order for each local rank
  std::vector<FailedWorker> failed_workers;  // of the current generation
  std::optional<Finish> finish;
  std::string last_refusal;
  bool awaits_reform_reason = false;
  bool is_stepping = false;
};

Agent::Agent(boost::asio::io_context& loop, AgentOptions options, Keeper keeper,
             rendezvous::Link& link, Metrics* metrics, std::function<void(const Finish&)> on_finish)
    : impl_(std::make_shared<Impl>(loop, std::move(options), link, metrics, std::move(on_finish))) {
  // Writing to a console or channel whose reader has gone is an error there, not the agent's end.
  ::signal(SIGPIPE, SIG_IGN);
  impl_->hold(std::move(keeper));
}

Agent::~Agent() = default;

void Agent::start() {
  agent_log::environment_notes(impl_->options.base_environment, impl_->options.config.facts.slots);
  impl_->deliver_later(Started{});
}

void Agent::signal(int signal_number) { impl_->deliver_later(SignalReceived{signal_number}); }
AgentState Agent::state() const { return impl_->supervisor.state(); }
const std::optional<Assignment>& Agent::assignment() const {
  return impl_->supervisor.assignment();
}
void Agent::update_metrics() { impl_->update_metrics(); }
std::string Agent::report() const { return impl_->report(); }

}  // namespace lrun::agent
