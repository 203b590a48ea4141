#include "tests/sim/process.h"

#include "tests/sim/describe.h"

namespace lrun::sim {
namespace {

// As rendezvous/client has them.
constexpr Duration kCallLimit = std::chrono::seconds(5);
// A Leave is worth a few tries; afterwards the closed connection says the same.
constexpr int kLeaveTriesMax = 4;
constexpr int kRepeatsMax = 200;

}  // namespace

Process::Process(Surroundings around, ProcessId id, agent::Config config, WorkerHabits habits,
                 Duration hold)
    : around_(std::move(around)),
      id_(id),
      config_(std::move(config)),
      habits_(habits),
      hold_(hold),
      supervisor_(config_, around_.agenda.now()),
      join_(config_.facts.incarnation.value),
      watch_(config_.facts.incarnation.value + 1),
      call_backoff_(config_.facts.incarnation.value + 2, {}) {}

void Process::start() {
  step(agent::Started{});
  watch_once();
}

void Process::step(const agent::Event& event) {
  if (std::holds_alternative<agent::KeeperLost>(event)) around_.workers.keeper_replaced(id_);
  const std::vector<agent::Action> actions = supervisor_.step(around_.agenda.now(), event);
  for (const agent::Action& action : actions) {
    const std::string text = describe(action);
    if (text.empty()) {
      around_.chronicle.whisper(around_.agenda.now(), node(), "heartbeat");
    } else {
      around_.chronicle.note(around_.agenda.now(), node(), text);
    }
    std::visit([this](const auto& what) { perform(what); }, action);
  }
  around_.on_step(*this, actions);
}

void Process::run(std::function<void()> deed) {
  if (is_paused_) {
    waiting_.push_back(std::move(deed));
  } else {
    deed();
  }
}

void Process::resume() {
  is_paused_ = false;
  resumed_at_ = around_.agenda.now();
  for (const auto& deed : std::exchange(waiting_, {})) run(deed);
}

std::optional<Instant> Process::next_deadline() const {
  if (is_paused_) return std::nullopt;
  return supervisor_.next_deadline();
}

void Process::later(Duration delay, std::function<void()> deed) {
  around_.network.in_process(id_, delay, std::move(deed));
}

bool Process::is_current(Generation generation) const {
  return supervisor_.assignment() && supervisor_.assignment()->generation == generation;
}

void Process::unreachable(const rendezvous::Unreachable& why) {
  step(agent::ServiceUnreachable{
      .host_answered = why.host_answered, .is_final = why.is_final, .sentence = why.sentence});
}

void Process::again(Repeating& call, void (Process::*once)()) {
  const std::uint64_t turn = call.turn;
  later(call.backoff.next(), [this, &call, turn, once] {
    if (call.turn == turn) (this->*once)();
  });
}

// --- Join --------------------------------------------------------------------------------------

void Process::perform(const agent::Join& join) {
  join_request_ = join.request;
  join_once();
}

void Process::join_once() {
  ++join_.turn;
  if (join_.open) around_.network.cancel(*join_.open);
  join_.open = around_.network.call(
      caller(),
      {.deadline = kCallLimit + hold_,
       .event = [request = join_request_](Ticket ticket) -> rendezvous::Event {
         return rendezvous::JoinReceived{ticket, request};
       },
       .on_reply =
           [this](const rendezvous::Action& answer) {
             join_.open.reset();
             join_.backoff.reset();
             const JoinReply& reply = std::get<rendezvous::AnswerJoin>(answer).reply;
             if (const auto* assignment = std::get_if<Assignment>(&reply)) {
               around_.chronicle.note(around_.agenda.now(), node(),
                                      "receives " + describe(*assignment));
               step(agent::Assigned{*assignment});
             } else if (const auto* refusal = std::get_if<Refusal>(&reply)) {
               step(agent::JoinFailed{*refusal});
             } else {
               join_once();
             }
           },
       .on_failure =
           [this](const rendezvous::Unreachable& why) {
             join_.open.reset();
             const std::uint64_t turn = join_.turn;
             unreachable(why);
             if (join_.turn == turn && !finish_) again(join_, &Process::join_once);
           }});
}

// --- Watch -------------------------------------------------------------------------------------

void Process::watch_once() {
  ++watch_.turn;
  if (finish_) return;
  const WatchRequest request{.node = config_.facts.node,
                             .incarnation = config_.facts.incarnation,
                             .run_id = config_.run_id};
  watch_.open = around_.network.call(
      caller(),
      {.deadline = kCallLimit + hold_,
       .event = [request](Ticket ticket) -> rendezvous::Event {
         return rendezvous::WatchReceived{ticket, request};
       },
       .on_reply =
           [this](const rendezvous::Action& answer) {
             watch_.open.reset();
             const WatchReply& reply = std::get<rendezvous::AnswerWatch>(answer).reply;
             if (std::holds_alternative<Refusal>(reply)) return again(watch_, &Process::watch_once);
             watch_.backoff.reset();
             if (const auto* directive = std::get_if<Directive>(&reply)) {
               around_.chronicle.note(around_.agenda.now(), node(), describe(*directive));
               step(agent::DirectiveReceived{.directive = *directive, .about = {}});
             }
             watch_once();
           },
       .on_failure =
           [this](const rendezvous::Unreachable& why) {
             watch_.open.reset();
             unreachable(why);
             again(watch_, &Process::watch_once);
           }});
}

// --- the other calls ---------------------------------------------------------------------------

void Process::perform(const agent::SendHeartbeat& heartbeat) {
  const Instant sent_at = around_.agenda.now();
  const HeartbeatRequest& request = heartbeat.request;
  const Generation about = request.running ? request.running->generation : Generation{};
  around_.network.call(
      caller(),
      {.deadline = kCallLimit,
       .event = [request](Ticket ticket) -> rendezvous::Event {
         return rendezvous::HeartbeatReceived{ticket, request};
       },
       .on_reply =
           [this, sent_at, about](const rendezvous::Action& answer) {
             const auto& reply = std::get<rendezvous::AnswerHeartbeat>(answer).reply;
             const auto* good = std::get_if<HeartbeatReply>(&reply);
             if (good == nullptr) return;  // refused: no right to go on comes from this
             step(agent::HeartbeatAnswered{sent_at, good->interval, good->lease});
             const std::string text = describe(good->directive);
             if (!text.empty()) around_.chronicle.note(around_.agenda.now(), node(), text);
             step(agent::DirectiveReceived{.directive = good->directive, .about = about});
           },
       .on_failure = [this](const rendezvous::Unreachable& why) { unreachable(why); }});
}

void Process::perform(const agent::Leave& leave) {
  ++leaves_open_;
  leave_once(leave.request, 1);
}

void Process::leave_once(const LeaveRequest& request, int tries) {
  around_.network.call(
      caller(), {.deadline = kCallLimit,
                 .event = [request](Ticket ticket) -> rendezvous::Event {
                   return rendezvous::LeaveReceived{ticket, request};
                 },
                 .on_reply = [this](const rendezvous::Action&) { --leaves_open_; },
                 .on_failure =
                     [this, request, tries](const rendezvous::Unreachable&) {
                       if (tries >= kLeaveTriesMax) {
                         --leaves_open_;
                         return;
                       }
                       later(call_backoff_.next(),
                             [this, request, tries] { leave_once(request, tries + 1); });
                     }});
}

void Process::perform(const agent::Publish& publish) { publish_once(publish.request, 1); }

void Process::publish_once(const PublishRequest& request, int tries) {
  if (!is_current(request.generation) || tries > kRepeatsMax) return;
  around_.network.call(
      caller(), {.deadline = kCallLimit,
                 .event = [request](Ticket ticket) -> rendezvous::Event {
                   return rendezvous::PublishReceived{ticket, request};
                 },
                 .on_reply = [](const rendezvous::Action&) {},
                 .on_failure =
                     [this, request, tries](const rendezvous::Unreachable&) {
                       later(call_backoff_.next(),
                             [this, request, tries] { publish_once(request, tries + 1); });
                     }});
}

void Process::perform(const agent::Lookup& lookup) {
  lookup_once(lookup.local_rank, lookup.request, 1);
}

void Process::lookup_once(LocalRank local_rank, const LookupRequest& request, int tries) {
  if (!is_current(request.generation) || tries > kRepeatsMax) return;
  const auto retry = [this, local_rank, request, tries] {
    lookup_once(local_rank, request, tries + 1);
  };
  around_.network.call(
      caller(), {.deadline = kCallLimit + hold_,
                 .event = [request](Ticket ticket) -> rendezvous::Event {
                   return rendezvous::LookupReceived{ticket, request};
                 },
                 .on_reply =
                     [this, local_rank, request, retry](const rendezvous::Action& answer) {
                       const LookupReply& reply = std::get<rendezvous::AnswerLookup>(answer).reply;
                       if (const auto* value = std::get_if<std::string>(&reply)) {
                         step(agent::LookupAnswered{local_rank, request.key, *value,
                                                    request.generation});
                       } else if (std::holds_alternative<AskAgain>(reply)) {
                         retry();
                       }
                     },
                 .on_failure =
                     [this, retry](const rendezvous::Unreachable&) {
                       later(call_backoff_.next(), retry);
                     }});
}

// --- workers -----------------------------------------------------------------------------------

void Process::perform(const agent::SpawnWorker& spawn) {
  around_.workers.spawn(id_, habits_, spawn);
}
void Process::perform(const agent::SignalWorker& order) {
  around_.workers.signal(id_, order.local_rank, order.signal_number);
}
void Process::perform(const agent::TellWorker& order) {
  around_.workers.tell(id_, order.local_rank, order.message);
}

void Process::perform(const agent::Finish& end) {
  finish_ = end;
  ++join_.turn;
  if (join_.open) around_.network.cancel(*join_.open);
  join_.open.reset();
}

}  // namespace lrun::sim
