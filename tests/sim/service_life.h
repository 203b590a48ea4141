// One life of the service's process: the production machine, its invariants, its answers on their
// way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/invariants.h"
#include "rendezvous/state_machine.h"
#include "tests/sim/agenda.h"
#include "tests/sim/chronicle.h"
#include "tests/sim/network.h"

namespace lrun::sim {

class ServiceLife {
 public:
  struct Surroundings {
    Agenda& agenda;
    Network& network;
    Chronicle& chronicle;
    // After every step of the machine.
    std::function<void(const rendezvous::Event&, const std::vector<rendezvous::Action>&)> on_step;
  };
  ServiceLife(Surroundings around, const rendezvous::Config& config, std::uint64_t term);

  void step(const rendezvous::Event& event);
  std::optional<Instant> next_deadline() const { return machine_.next_deadline(); }
  rendezvous::Status status() const { return machine_.status(around_.agenda.now()); }

 private:
  void carry_out(const rendezvous::Action& action);

  Surroundings around_;
  rendezvous::StateMachine machine_;
  rendezvous::Invariants invariants_;
};

}  // namespace lrun::sim
