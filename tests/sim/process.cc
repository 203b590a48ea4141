#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

#include "tests/sim/describe.h"

namespace lrun::sim {
namespace {

// As rendezvous/client has them.
constexpr Duration kCallLimit = std::chrono::seconds(5);
// As agent/rendezvous_calls has it: a service that answers "ask again" at once is not asked in a
// circle.
constexpr Duration kAskAgainInterval = std::chrono::milliseconds(50);

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
      note(text);
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

void Process::unreachable(const rendezvous::Unreachable& why) {
  if (finish_) return;
  step(agent::ServiceUnreachable{
      .host_answered = why.host_answered, .is_final = why.is_final, .sentence = why.sentence});
}

void Process::again(Repeating& call, Duration wait, void (Process::*once)()) {
  const std::uint64_t turn = call.turn;
  later(wait, [this, &call, turn, once] {
    if (call.turn == turn && !finish_) (this->*once)();
  });
}

Duration Process::until_ask_again(const Repeating& call) const {
  return std::max(Duration::zero(), call.asked_at + kAskAgainInterval - around_.agenda.now());
}

void Process::call(Network::Call call) { around_.network.call({id_, node()}, std::move(call)); }

void Process::note(const std::string& text) {
  around_.chronicle.note(around_.agenda.now(), node(), text);
}

// --- Join --------------------------------------------------------------------------------------

void Process::perform(const agent::Join& join) {
  join_request_ = join.request;
  join_.backoff.reset();
  join_once();
}

// A second Join replaces the first: the answer to that is not heeded any more, unless it is a
// refusal for good that crossed the second one.
void Process::join_once() {
  const std::uint64_t turn = ++join_.turn;
  join_.asked_at = around_.agenda.now();
  call({.deadline = kCallLimit + hold_,
        .event = [request = join_request_](Ticket ticket) -> rendezvous::Event {
          return rendezvous::JoinReceived{ticket, request};
        },
        .on_reply =
            [this, turn](const rendezvous::Action& answer) {
              if (finish_) return;
              const JoinReply& reply = std::get<rendezvous::AnswerJoin>(answer).reply;
              const auto* refusal = std::get_if<Refusal>(&reply);
              const bool is_last_word = refusal != nullptr && !is_retryable(refusal->reason);
              if (turn == join_.turn || is_last_word) joined(reply);
            },
        .on_failure =
            [this, turn](const rendezvous::Unreachable& why) {
              unreachable(why);
              if (turn == join_.turn) again(join_, join_.backoff.next(), &Process::join_once);
            }});
}

void Process::joined(const JoinReply& reply) {
  join_.backoff.reset();
  if (std::holds_alternative<AskAgain>(reply)) {
    return again(join_, until_ask_again(join_), &Process::join_once);
  }
  ++join_.turn;  // answered: nothing repeats it any more
  if (const auto* assignment = std::get_if<Assignment>(&reply)) {
    entered_ = assignment->generation;
    note("receives " + describe(*assignment));
    step(agent::Assigned{*assignment});
  } else {
    step(agent::JoinFailed{std::get<Refusal>(reply)});
  }
}

// --- Watch -------------------------------------------------------------------------------------

void Process::watch_once() {
  ++watch_.turn;
  watch_.asked_at = around_.agenda.now();
  const WatchRequest request{.node = config_.facts.node,
                             .incarnation = config_.facts.incarnation,
                             .run_id = config_.run_id};
  call({.deadline = kCallLimit + hold_,
        .event = [request](Ticket ticket) -> rendezvous::Event {
          return rendezvous::WatchReceived{ticket, request};
        },
        .on_reply =
            [this](const rendezvous::Action& answer) {
              if (!finish_) watched(std::get<rendezvous::AnswerWatch>(answer).reply);
            },
        .on_failure =
            [this](const rendezvous::Unreachable& why) {
              unreachable(why);
              again(watch_, watch_.backoff.next(), &Process::watch_once);
            }});
}

void Process::watched(const WatchReply& reply) {
  if (const auto* refusal = std::get_if<Refusal>(&reply)) {
    refused(*refusal);
    return again(watch_, watch_.backoff.next(), &Process::watch_once);
  }
  watch_.backoff.reset();
  if (const auto* directive = std::get_if<Directive>(&reply)) told(*directive, std::nullopt);
  again(watch_, until_ask_again(watch_), &Process::watch_once);
}

void Process::told(const Directive& directive, std::optional<Generation> about) {
  const std::string text = describe(directive);
  if (text.empty()) return;
  note(text);
  step(agent::DirectiveReceived{.directive = directive, .about = about});
}

// A heartbeat or a watch was refused. While it joins, the answer to Join decides.
void Process::refused(const Refusal& refusal) {
  const AgentState state = supervisor_.state();
  const bool is_joining = state == AgentState::Joining || state == AgentState::Reforming ||
                          state == AgentState::Backoff || state == AgentState::Done;
  const bool ends_membership =
      refusal.reason == RefuseReason::Closed || refusal.reason == RefuseReason::Superseded;
  if (is_joining || !ends_membership) return;
  FirstCause cause;
  cause.kind = FailureKind::Refused;
  cause.node = config_.facts.node;
  cause.sentence = refusal.sentence;
  told(StopJob{.outcome = Outcome::Failed, .cause = cause}, std::nullopt);
}

// --- the other calls ---------------------------------------------------------------------------

void Process::perform(const agent::SendHeartbeat& heartbeat) {
  const Instant sent_at = around_.agenda.now();
  const HeartbeatRequest& request = heartbeat.request;
  const Generation about = request.running ? request.running->generation : Generation{};
  call({.deadline = kCallLimit,
        .event = [request](Ticket ticket) -> rendezvous::Event {
          return rendezvous::HeartbeatReceived{ticket, request};
        },
        .on_reply =
            [this, sent_at, about](const rendezvous::Action& answer) {
              if (finish_) return;
              const auto& reply = std::get<rendezvous::AnswerHeartbeat>(answer).reply;
              if (const auto* refusal = std::get_if<Refusal>(&reply)) return refused(*refusal);
              const auto& good = std::get<HeartbeatReply>(reply);
              step(agent::HeartbeatAnswered{sent_at, good.interval, good.lease});
              told(good.directive, about);
            },
        .on_failure = [this](const rendezvous::Unreachable& why) { unreachable(why); }});
}

void Process::perform(const agent::Leave& leave) {
  ++leaves_open_;
  leave_once(leave.request);
}

// Repeated even at the end: it is what the end waits for.
void Process::leave_once(const LeaveRequest& request) {
  call({.deadline = kCallLimit,
        .event = [request](Ticket ticket) -> rendezvous::Event {
          return rendezvous::LeaveReceived{ticket, request};
        },
        .on_reply = [this](const rendezvous::Action&) { --leaves_open_; },
        .on_failure =
            [this, request](const rendezvous::Unreachable& why) {
              unreachable(why);
              later(call_backoff_.next(), [this, request] { leave_once(request); });
            }});
}

void Process::perform(const agent::Publish& publish) { publish_once(publish.request); }

void Process::publish_once(const PublishRequest& request) {
  if (request.generation != entered_ || finish_) return;
  call({.deadline = kCallLimit,
        .event = [request](Ticket ticket) -> rendezvous::Event {
          return rendezvous::PublishReceived{ticket, request};
        },
        .on_reply = [](const rendezvous::Action&) {},
        .on_failure =
            [this, request](const rendezvous::Unreachable& why) {
              unreachable(why);
              later(call_backoff_.next(), [this, request] { publish_once(request); });
            }});
}

void Process::perform(const agent::Lookup& lookup) {
  lookup_once(lookup.local_rank, lookup.request);
}

void Process::lookup_once(LocalRank local_rank, const LookupRequest& request) {
  if (request.generation != entered_ || finish_) return;
  const auto retry = [this, local_rank, request] { lookup_once(local_rank, request); };
  call({.deadline = kCallLimit + hold_,
        .event = [request](Ticket ticket) -> rendezvous::Event {
          return rendezvous::LookupReceived{ticket, request};
        },
        .on_reply =
            [this, local_rank, request, retry](const rendezvous::Action& answer) {
              const LookupReply& reply = std::get<rendezvous::AnswerLookup>(answer).reply;
              const auto* value = std::get_if<std::string>(&reply);
              if (value == nullptr) return later(call_backoff_.next(), retry);
              if (request.generation != entered_ || finish_) return;
              step(agent::LookupAnswered{local_rank, request.key, *value, request.generation});
            },
        .on_failure =
            [this, retry](const rendezvous::Unreachable& why) {
              unreachable(why);
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

void Process::perform(const agent::Finish& end) { finish_ = end; }

}  // namespace lrun::sim
