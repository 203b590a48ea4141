#include "tests/sim/service_life.h"

#include <utility>

#include "tests/sim/describe.h"

namespace lrun::sim {

ServiceLife::ServiceLife(Surroundings around, const rendezvous::Config& config, std::uint64_t term)
    : around_(std::move(around)),
      machine_(config, term, around_.agenda.now()),
      invariants_(machine_.status(around_.agenda.now())) {}

void ServiceLife::step(const rendezvous::Event& event) {
  const Instant now = around_.agenda.now();
  const std::vector<rendezvous::Action> actions = machine_.step(now, event);
  const rendezvous::Status after = machine_.status(now);
  const auto broken = invariants_.check({.now = now,
                                         .event = event,
                                         .actions = actions,
                                         .after = after,
                                         .next_deadline = machine_.next_deadline()});
  for (const std::string& sentence : broken) around_.chronicle.violation(now, sentence);
  for (const rendezvous::Action& action : actions) carry_out(action);
  around_.on_step(event, actions);
}

void ServiceLife::carry_out(const rendezvous::Action& action) {
  const std::string text = describe(action);
  if (text.empty()) {
    around_.chronicle.whisper(around_.agenda.now(), "service", "answer");
  } else {
    around_.chronicle.note(around_.agenda.now(), "service", text);
  }
  const auto answer = [&](const auto& what) {
    if constexpr (requires { what.ticket; }) around_.network.reply(what.ticket, action);
  };
  std::visit(answer, action);
}

}  // namespace lrun::sim
