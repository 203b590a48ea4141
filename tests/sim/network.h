// The way between agents and the service, call by call.
//
// Owns the open calls, their tickets, delays, losses, duplicates, resets and partitions. It behaves
// like gRPC over TCP: a dead process's kernel closes its connections, a refused connection answers
// at once, silence ends at the caller's deadline. Refuses to know what the calls mean.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/events.h"
#include "rendezvous/link.h"
#include "tests/sim/agenda.h"
#include "tests/sim/random.h"
#include "tests/sim/world.h"

namespace lrun::sim {

using CallId = std::uint64_t;
// One life of an agent process.
using ProcessId = std::uint64_t;

class Network {
 public:
  struct Ends {
    std::function<bool()> is_service_up;
    std::function<void(const rendezvous::Event&)> to_service;
    // Runs the deed in the process, later if its machine is paused, never if it is dead.
    std::function<void(ProcessId, std::function<void()>)> to_process;
  };
  struct Caller {
    ProcessId process = 0;
    std::string node;
  };
  struct Call {
    Duration deadline{};
    // The request as an event of the machine, once its ticket is known.
    std::function<rendezvous::Event(Ticket)> event;
    std::function<void(const rendezvous::Action&)> on_reply;
    std::function<void(const rendezvous::Unreachable&)> on_failure;
  };

  Network(Agenda& agenda, Random random, NetworkWeather weather, Ends ends);

  CallId call(const Caller& caller, Call call);
  // The deed runs in the process, if that still lives.
  void in_process(ProcessId process, Duration delay, std::function<void()> deed);
  // The caller takes it back; no callback runs.
  void cancel(CallId id);
  // The machine has answered a ticket.
  void reply(Ticket ticket, const rendezvous::Action& answer);
  // For calls of people, who are never lost.
  Ticket direct_ticket() { return Ticket{++last_ticket_}; }

  void process_died(ProcessId process);
  void service_died();
  // The process's connection breaks; both ends are told.
  void reset(ProcessId process);

  void cut(const std::string& node, Direction direction);
  void mend(const std::string& node);
  void set_weather(const NetworkWeather& weather) { weather_ = weather; }
  const NetworkWeather& weather() const { return weather_; }
  std::size_t open_calls(ProcessId process) const;

 private:
  struct Open {
    Caller caller;
    Call call;
    std::optional<Ticket> ticket;  // as soon as the service has it
  };
  Duration delay();
  bool reaches_service(const std::string& node) const { return !cut_up_.contains(node); }
  bool reaches_node(const std::string& node) const { return !cut_down_.contains(node); }
  void arrive(CallId id);
  // The same request once more, as after a reconnection; nobody waits for its answer.
  void repeat(const Open& original);
  void fail(CallId id, bool host_answered, const std::string& sentence);
  void fail_later(CallId id, const std::string& sentence);
  void end_at_service(const Open& open);

  Agenda& agenda_;
  Random random_;
  NetworkWeather weather_;
  Ends ends_;
  CallId last_call_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::map<CallId, Open> open_;
  std::map<Ticket, CallId> by_ticket_;
  std::set<std::string> cut_up_;
  std::set<std::string> cut_down_;
};

}  // namespace lrun::sim
