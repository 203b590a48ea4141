#include "agent/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lrun::agent {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Registry;

// Of lrun_time_seconds_total: where a slot's time went, and what it was lost to.
enum class TimePhase { Train, Checkpoint, Wait, Form, Start, Restore, Replay, Stopped };
enum class TimeCause { None, Start, Failure, Stall, Membership, LeaseLost, End };

const std::map<AgentState, const char*> kStates{
    {AgentState::Joining, "joining"},     {AgentState::Starting, "starting"},
    {AgentState::Running, "running"},     {AgentState::Finished, "finished"},
    {AgentState::Reforming, "reforming"}, {AgentState::Stopping, "stopping"},
    {AgentState::Backoff, "backoff"},     {AgentState::Done, "done"}};
const std::map<ReformCause, const char*> kReforms{{ReformCause::NodeJoined, "node_joined"},
                                                  {ReformCause::NodeLost, "node_lost"},
                                                  {ReformCause::Drained, "drained"},
                                                  {ReformCause::WorkerFailed, "worker_failed"},
                                                  {ReformCause::LeaseLost, "lease_lost"}};
const std::map<HeartbeatResult, const char*> kHeartbeats{{HeartbeatResult::Answered, "answered"},
                                                         {HeartbeatResult::Late, "late"},
                                                         {HeartbeatResult::Failed, "failed"}};
const std::map<Stream, const char*> kStreams{{Stream::Stdout, "stdout"},
                                             {Stream::Stderr, "stderr"}};
const std::map<TimePhase, const char*> kPhases{
    {TimePhase::Train, "train"},   {TimePhase::Checkpoint, "checkpoint"},
    {TimePhase::Wait, "wait"},     {TimePhase::Form, "form"},
    {TimePhase::Start, "start"},   {TimePhase::Restore, "restore"},
    {TimePhase::Replay, "replay"}, {TimePhase::Stopped, "stopped"}};
const std::map<TimeCause, const char*> kCauses{{TimeCause::None, "none"},
                                               {TimeCause::Start, "start"},
                                               {TimeCause::Failure, "failure"},
                                               {TimeCause::Stall, "stall"},
                                               {TimeCause::Membership, "membership"},
                                               {TimeCause::LeaseLost, "lease_lost"},
                                               {TimeCause::End, "end"}};
const std::vector<std::string> kRestartCauses{"exit",  "signal", "oom",
                                              "stall", "spawn",  "reported"};
const std::vector<std::string> kExitKinds{"success", "exit", "signal", "oom", "stopped"};

std::string restart_cause(FailureKind kind) {
  switch (kind) {
    case FailureKind::OutOfMemory:
      return "oom";
    case FailureKind::Stalled:
      return "stall";
    case FailureKind::SpawnFailed:
      return "spawn";
    case FailureKind::Reported:
      return "reported";
    case FailureKind::ExitCode:
    case FailureKind::Refused:
      return "exit";
    case FailureKind::Signal:
    case FailureKind::NodeLost:
    case FailureKind::LeaseLost:
    case FailureKind::Interrupted:
      return "signal";
  }
  return "exit";
}

std::string exit_kind(const ExitStatus& status, bool was_stopped) {
  if (status.is_success()) return "success";
  if (status.out_of_memory) return "oom";
  if (was_stopped) return "stopped";
  return status.by_signal ? "signal" : "exit";
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Family<Counter>& counters(Registry& registry, const char* name, const char* text) {
  return prometheus::BuildCounter().Name(name).Help(text).Register(registry);
}

Family<Gauge>& gauges(Registry& registry, const char* name, const char* text) {
  return prometheus::BuildGauge().Name(name).Help(text).Register(registry);
}

}  // namespace

struct Metrics::Impl {
  // One slot: what its worker is at, and its gauges.
  struct Slot {
    Gauge* step = nullptr;
    Gauge* age = nullptr;
    TimePhase phase = TimePhase::Wait;
    std::int64_t newest_step = 0;  // ever: what is below it is replayed
    std::int64_t step_seen = -1;
    Instant advanced_at{};
    bool has_trained = false;  // since its worker started
  };

  Impl(Registry& registry, int slot_count, Instant now)
      : states(gauges(registry, "lrun_agent_state", "1 for the agent's current state")),
        restarts(counters(registry, "lrun_agent_restarts_total",
                          "New workers after a failure, charged to the job's budget")),
        reforms(counters(registry, "lrun_agent_reforms_total",
                         "New generations after a membership change, free of charge")),
        heartbeats(counters(registry, "lrun_agent_heartbeats_total", "Heartbeats by result")),
        exits(counters(registry, "lrun_worker_exits_total", "Ended workers by kind of end")),
        time(counters(registry, "lrun_time_seconds_total",
                      "Slot-seconds by what they were spent on; the phases add up to wall time")),
        dropped(counters(registry, "lrun_output_dropped_bytes_total",
                         "Worker output not shown because the console was too slow")),
        samples(counters(registry, "lrun_worker_samples_total",
                         "Samples that the whole job has consumed, each counted once")
                    .Add({})),
        samples_rate(gauges(registry, "lrun_worker_samples_per_second",
                            "Samples per second of the whole job, as its workers say")
                         .Add({})),
        slots(static_cast<std::size_t>(slot_count)),
        updated_at(now) {
    gauges(registry, "lrun_agent_slots", "Slots of this node").Add({}).Set(slot_count);
    auto& steps = gauges(registry, "lrun_worker_step", "Last completed step; 0 without a worker");
    auto& ages = gauges(registry, "lrun_worker_progress_age_seconds",
                        "Since the step last advanced; 0 for workers that report none");
    for (std::size_t at = 0; at < slots.size(); ++at) {
      slots[at].step = &steps.Add({{"local_rank", std::to_string(at)}});
      slots[at].age = &ages.Add({{"local_rank", std::to_string(at)}});
    }
    make_series();
    show_state();
  }

  // B133: every series is there before its first event.
  void make_series() {
    for (const auto& [key, word] : kStates) states.Add({{"state", word}});
    for (const std::string& word : kRestartCauses) restarts.Add({{"cause", word}});
    for (const auto& [key, word] : kReforms) reforms.Add({{"cause", word}});
    for (const auto& [key, word] : kHeartbeats) heartbeats.Add({{"result", word}});
    for (const std::string& word : kExitKinds) exits.Add({{"kind", word}});
    for (const auto& [key, word] : kStreams) dropped.Add({{"stream", word}});
    for (const auto& [phase, phase_word] : kPhases) {
      for (const auto& [cause_key, cause_word] : kCauses) {
        time.Add({{"phase", phase_word}, {"cause", cause_word}});
      }
    }
  }

  void show_state() {
    for (const auto& [key, word] : kStates) states.Add({{"state", word}}).Set(key == state ? 1 : 0);
  }

  void book_time(Instant now) {
    const double passed = seconds(now - updated_at);
    updated_at = now;
    for (const Slot& slot : slots) {
      const bool is_useful = slot.phase == TimePhase::Train || slot.phase == TimePhase::Checkpoint;
      const TimeCause lost_to = is_useful ? TimeCause::None : cause;
      time.Add({{"phase", kPhases.at(slot.phase)}, {"cause", kCauses.at(lost_to)}})
          .Increment(passed);
    }
  }

  // What every slot is at while no worker decides it.
  TimePhase phase_of_state() const {
    switch (state) {
      case AgentState::Joining:
        return has_run ? TimePhase::Form : TimePhase::Wait;
      case AgentState::Starting:
        return TimePhase::Start;
      case AgentState::Running:
      case AgentState::Finished:
        return TimePhase::Wait;
      case AgentState::Reforming:
        return TimePhase::Form;
      case AgentState::Stopping:
      case AgentState::Backoff:
      case AgentState::Done:
        return TimePhase::Stopped;
    }
    return TimePhase::Wait;
  }

  static TimePhase phase_of_worker(const Slot& slot, const WorkerView& worker) {
    if (!worker.is_live) return TimePhase::Train;
    if (!slot.has_trained) return TimePhase::Restore;
    if (worker.progress.step < slot.newest_step) return TimePhase::Replay;
    return worker.progress.activity == channel::Activity::Saving ? TimePhase::Checkpoint
                                                                 : TimePhase::Train;
  }

  void look_at(Slot& slot, const WorkerView& worker, Instant now) {
    const std::int64_t step = worker.progress.step;
    if (step != slot.step_seen) {
      slot.has_trained = slot.step_seen >= 0;
      slot.step_seen = step;
      slot.advanced_at = now;
    }
    slot.newest_step = std::max(slot.newest_step, step);
    slot.step->Set(static_cast<double>(step));
    slot.age->Set(worker.is_live ? seconds(now - slot.advanced_at) : 0);
    if (state == AgentState::Running) slot.phase = phase_of_worker(slot, worker);
  }

  void forget_worker(Slot& slot) {
    slot.step->Set(0);
    slot.age->Set(0);
    slot.step_seen = -1;
    slot.has_trained = false;
  }

  void look_at(const std::vector<WorkerView>& workers, Instant now) {
    for (Slot& slot : slots) slot.phase = phase_of_state();
    double rate = 0;
    std::int64_t consumed = 0;
    std::vector<bool> is_alive(slots.size());
    for (const WorkerView& worker : workers) {
      const auto at = static_cast<std::size_t>(worker.local_rank.value);
      if (!worker.is_alive || at >= slots.size()) continue;
      is_alive[at] = true;
      look_at(slots[at], worker, now);
      rate = std::max(rate, worker.progress.samples_per_second);
      consumed = std::max(consumed, worker.progress.samples);
    }
    for (std::size_t at = 0; at < slots.size(); ++at) {
      if (!is_alive[at]) forget_worker(slots[at]);
    }
    samples_rate.Set(state == AgentState::Running ? rate : 0);
    // Replayed samples were counted the first time.
    if (consumed > newest_samples) {
      samples.Increment(static_cast<double>(consumed - std::exchange(newest_samples, consumed)));
    }
  }

  Family<Gauge>& states;
  Family<Counter>& restarts;
  Family<Counter>& reforms;
  Family<Counter>& heartbeats;
  Family<Counter>& exits;
  Family<Counter>& time;
  Family<Counter>& dropped;
  Counter& samples;
  Gauge& samples_rate;
  std::vector<Slot> slots;
  Instant updated_at;
  AgentState state = AgentState::Joining;
  TimeCause cause = TimeCause::Start;
  bool has_run = false;
  std::int64_t newest_samples = 0;
};

Metrics::Metrics(Registry& registry, int slots, Instant now)
    : impl_(std::make_unique<Impl>(registry, slots, now)) {}
Metrics::~Metrics() = default;

void Metrics::update(Instant now, AgentState state, const std::vector<WorkerView>& workers) {
  Impl& impl = *impl_;
  impl.book_time(now);
  impl.state = state;
  impl.has_run = impl.has_run || state == AgentState::Running;
  if (state == AgentState::Finished || state == AgentState::Done) impl.cause = TimeCause::End;
  impl.show_state();
  impl.look_at(workers, now);
}

void Metrics::count_restart(FailureKind kind) {
  impl_->restarts.Add({{"cause", restart_cause(kind)}}).Increment();
  impl_->cause = kind == FailureKind::Stalled ? TimeCause::Stall : TimeCause::Failure;
}

void Metrics::count_reform(ReformCause cause) {
  impl_->reforms.Add({{"cause", kReforms.at(cause)}}).Increment();
  impl_->cause = cause == ReformCause::LeaseLost ? TimeCause::LeaseLost : TimeCause::Membership;
}

void Metrics::count_exit(const ExitStatus& status, bool was_stopped) {
  impl_->exits.Add({{"kind", exit_kind(status, was_stopped)}}).Increment();
}

void Metrics::count_heartbeat(HeartbeatResult result) {
  impl_->heartbeats.Add({{"result", kHeartbeats.at(result)}}).Increment();
}

void Metrics::count_dropped(Stream stream, std::size_t bytes) {
  impl_->dropped.Add({{"stream", kStreams.at(stream)}}).Increment(static_cast<double>(bytes));
}

}  // namespace lrun::agent
