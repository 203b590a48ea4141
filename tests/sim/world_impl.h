// The inside of a world: included by world.cc (commands) and world_questions.cc only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/checks.h"
#include "tests/sim/describe.h"
#include "tests/sim/process.h"
#include "tests/sim/service_life.h"
#include "tests/sim/world.h"

namespace lrun::sim {

// More steps at one instant than any group of a simulation needs: something runs in circles.
inline constexpr int kStepsAtOnceMax = 4000;
// As agent/rendezvous_calls: after its Finish an agent has this long to say that it leaves.
inline constexpr Duration kExitLimit = std::chrono::seconds(3);

struct World::Impl {
  explicit Impl(Options told)
      : options(std::move(told)),
        random(options.seed),
        network(agenda, random.fork(), options.weather,
                {.is_service_up = [this] { return service.has_value(); },
                 .to_service = [this](const rendezvous::Event& event) { tell_service(event); },
                 .to_process =
                     [this](ProcessId id, const std::function<void()>& deed) {
                       if (Process* process = find(id)) process->run(deed);
                     }}),
        workers(
            agenda, random.fork(), chronicle,
            [this](ProcessId id, const agent::Event& event) {
              if (Process* process = find(id)) {
                process->run([process, event] { process->step(event); });
              }
            },
            [this](ProcessId id) {
              const Process* process = find(id);
              return process != nullptr && process->is_paused();
            }),
        checks({.max_restarts = options.service.max_restarts,
                .fence = fence_bound(),
                .lease = options.service.lease},
               chronicle),
        term(options.first_term) {
    start_service(options.service.may_have_predecessor);
  }

  // Two thirds of the lease, one heartbeat in which it is noticed, and the way there and back.
  Duration fence_bound() const {
    return options.service.lease * 2 / 3 + options.service.heartbeat +
           4 * network.weather().delay_max + std::chrono::milliseconds(100);
  }

  Process* find(ProcessId id) {
    const auto found = processes.find(id);
    return found == processes.end() ? nullptr : &found->second;
  }
  Process* find(const std::string& node) {
    const auto found = on_node.find(node);
    return found == on_node.end() ? nullptr : find(found->second);
  }
  const Process* find(const std::string& node) const { return const_cast<Impl*>(this)->find(node); }

  void command(const std::string& text) { chronicle.note(agenda.now(), ">", text); }

  void start_service(bool may_have_predecessor) {
    rendezvous::Config config = options.service;
    config.may_have_predecessor = may_have_predecessor;
    checks.service_started(agenda.now());
    service.emplace(
        ServiceLife::Surroundings{
            .agenda = agenda,
            .network = network,
            .chronicle = chronicle,
            .on_step =
                [this](const rendezvous::Event& event,
                       const std::vector<rendezvous::Action>& actions) {
                  ++steps_at_once;
                  for (const rendezvous::Action& action : actions) {
                    if (const auto* published =
                            std::get_if<rendezvous::GenerationPublished>(&action)) {
                      generations.push_back(*published);
                    }
                  }
                  checks.check(agenda.now(), event, actions);
                }},
        config, term++);
    ++service_life;
  }

  void tell_service(const rendezvous::Event& event) {
    if (service_lags) {
      unheard.push_back(event);
    } else {
      service->step(event);
    }
  }

  // It wakes, notices how long it stood still, and finds what came meanwhile.
  void service_wakes(Duration lag) {
    service_lags = false;
    service->step(rendezvous::LagMeasured{lag});
    for (const rendezvous::Event& event : std::exchange(unheard, {})) service->step(event);
  }

  void stop_service() {
    service.reset();
    service_lags = false;
    unheard.clear();
    network.service_died();
  }

  std::optional<Instant> service_deadline() const {
    if (!service || service_lags) return std::nullopt;
    return service->next_deadline();
  }

  // The process is over: its machine's kernel closes what it held.
  void end_process(ProcessId id) {
    workers.agent_died(id);
    network.process_died(id);
    const auto found = processes.find(id);
    if (found->second.finish()) ended[found->second.node()] = *found->second.finish();
    on_node.erase(found->second.node());
    // Its own code may be on the stack.
    dead.push_back(processes.extract(found));
  }

  void agent_stepped(Process& process, const std::vector<agent::Action>& actions) {
    ++steps_at_once;
    checks.check(agenda.now(), process, actions, workers);
    const bool finished = std::any_of(actions.begin(), actions.end(), [](const auto& action) {
      return std::holds_alternative<agent::Finish>(action);
    });
    if (finished) wait_for_exit(process.id(), agenda.now() + kExitLimit);
  }

  void wait_for_exit(ProcessId id, Instant limit) {
    network.in_process(id, std::chrono::milliseconds(5), [this, id, limit] {
      const Process* process = find(id);
      if (process->may_exit() || agenda.now() >= limit) {
        chronicle.note(agenda.now(), process->node(), "exits");
        return end_process(id);
      }
      wait_for_exit(id, limit);
    });
  }

  std::optional<Instant> next() const {
    std::optional<Instant> earliest = agenda.next();
    const auto consider = [&earliest](std::optional<Instant> candidate) {
      if (candidate && (!earliest || *candidate < *earliest)) earliest = candidate;
    };
    consider(service_deadline());
    for (const auto& [id, process] : processes) consider(process.next_deadline());
    return earliest;
  }

  // What is due now, one thing after the other.
  void run_instant() {
    if (agenda.run_one()) return;
    if (service_deadline() && *service_deadline() <= agenda.now()) {
      return service->step(rendezvous::TimePassed{});
    }
    for (auto& [id, process] : processes) {
      const auto due = process.next_deadline();
      if (due && *due <= agenda.now()) return process.step(agent::TimePassed{});
    }
  }

  bool advance_until(const std::function<bool()>& done, Duration limit) {
    const Instant end = agenda.now() + limit;
    while (chronicle.violations().empty()) {
      if (done()) return true;
      const std::optional<Instant> due = next();
      if (!due || *due > end) {
        agenda.go_to(end);
        return done();
      }
      if (*due > agenda.now()) {
        agenda.go_to(*due);
        steps_at_once = 0;
      }
      run_instant();
      dead.clear();
      if (steps_at_once > kStepsAtOnceMax) chronicle.violation(agenda.now(), "a busy loop");
    }
    return false;
  }

  Options options;
  Agenda agenda;
  Random random;
  Chronicle chronicle;
  Network network;
  Workers workers;
  Checks checks;
  std::uint64_t term;
  std::optional<ServiceLife> service;
  std::uint64_t service_life = 0;
  bool service_lags = false;
  std::vector<rendezvous::Event> unheard;  // came while the service stood still
  ProcessId last_process = 0;
  std::map<ProcessId, Process> processes;
  std::map<std::string, ProcessId> on_node;
  std::vector<std::map<ProcessId, Process>::node_type> dead;
  std::map<std::string, agent::Finish> ended;
  std::vector<rendezvous::GenerationPublished> generations;
  int steps_at_once = 0;
};

}  // namespace lrun::sim
