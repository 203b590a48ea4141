#include "rendezvous/service.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cassert>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/log.h"
#include "rendezvous/metrics.h"
#include "rendezvous/state_machine.h"
#include "rendezvous/words.h"

namespace lrun::rendezvous {
namespace {

// A deadline served later than this was not the machine's time but the service's own absence: a
// stopped process, a blocked loop, a starved host.
constexpr Duration kLagMin = std::chrono::milliseconds(100);

using OnJoin = std::function<void(JoinReply)>;
using OnWatch = std::function<void(WatchReply)>;
using OnHeartbeat = std::function<void(HeartbeatAnswer)>;
using OnAcknowledge = std::function<void(AcknowledgeAnswer)>;
using OnLookup = std::function<void(LookupReply)>;
using OnReply = std::variant<OnJoin, OnWatch, OnHeartbeat, OnAcknowledge, OnLookup>;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Service::Impl {
  Impl(boost::asio::io_context& loop_of_service, Options options_given,
       std::function<void(JobClosed)> on_job_closed)
      : loop(loop_of_service),
        options(std::move(options_given)),
        on_closed(std::move(on_job_closed)),
        machine(options.config, options.term, std::chrono::steady_clock::now()),
        timer(loop) {}

  // --- the heart
  // -----------------------------------------------------------------------------------

  template <class Received, class Request, class Callback>
  Ticket open_call(Request request, Callback on_reply) {
    const Ticket ticket{++last_ticket};
    open_calls.emplace(ticket, std::move(on_reply));
    take_in(Received{ticket, std::move(request)});
    return ticket;
  }

  void take_in(const Event& event) {
    const Instant now = std::chrono::steady_clock::now();
    notice_lag(now);
    step(now, event);
    arm_timer();
    if (is_status_stale) show_status(now);
  }

  void step(Instant now, const Event& event) {
    for (const Action& action : machine.step(now, event)) {
      std::visit([this](const auto& order) { perform(order); }, action);
    }
  }

  // Before anything else is judged: whatever waited in sockets meanwhile was sent in time.
  void notice_lag(Instant now) {
    if (!armed_for || now < *armed_for + kLagMin) return;
    const Duration lag = now - *armed_for;
    armed_for = now;  // once for each stretch of absence
    log::warn("service_lagged", {{"lag_seconds", seconds(lag)}});
    if (options.metrics) options.metrics->show_lag(lag);
    step(now, LagMeasured{lag});
  }

  void arm_timer() {
    const std::optional<Instant> deadline = machine.next_deadline();
    if (deadline == armed_for && is_timer_set) return;
    armed_for = deadline;
    is_timer_set = deadline.has_value();
    if (!deadline) {
      timer.cancel();
      return;
    }
    timer.expires_at(*deadline);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) on_deadline();
    });
  }

  void on_deadline() {
    const Instant now = std::chrono::steady_clock::now();
    // Armed anew while this wait's end was already queued: the new one will come.
    if (!armed_for || now < *armed_for) return;
    if (options.metrics) options.metrics->show_lag(now - *armed_for);
    is_timer_set = false;
    take_in(TimePassed{});
  }

  void show_status(Instant now) {
    is_status_stale = false;
    if (options.metrics) options.metrics->show(machine.status(now));
  }

  // --- answers: each posted, so that no callback runs inside the call that made it
  // -------------------

  template <class Callback, class Reply>
  void deliver(Ticket ticket, Reply reply) {
    const auto call = open_calls.find(ticket);
    assert(call != open_calls.end() && "the machine answers each ticket once");
    boost::asio::post(loop, [on_reply = std::get<Callback>(std::move(call->second)),
                             reply = std::move(reply)]() mutable { on_reply(std::move(reply)); });
    open_calls.erase(call);
  }

  void perform(const AnswerJoin& answer) { deliver<OnJoin>(answer.ticket, answer.reply); }
  void perform(const AnswerWatch& answer) { deliver<OnWatch>(answer.ticket, answer.reply); }
  void perform(const AnswerLookup& answer) { deliver<OnLookup>(answer.ticket, answer.reply); }
  void perform(const AnswerHeartbeat& answer) {
    deliver<OnHeartbeat>(answer.ticket, HeartbeatAnswer(answer.reply));
  }
  void perform(const Acknowledge& answer) {
    AcknowledgeAnswer reply;
    if (answer.refusal) reply = *answer.refusal;
    deliver<OnAcknowledge>(answer.ticket, std::move(reply));
  }

  // --- the log and the metrics
  // ---------------------------------------------------------------------

  void perform(const PhaseChanged& changed) {
    is_status_stale = true;
    log::info("phase_changed",
              {{"from", word(changed.from)}, {"to", word(changed.to)}, {"reason", changed.reason}});
  }

  void perform(const GenerationPublished& published) {
    is_status_stale = true;
    if (options.metrics) options.metrics->count(published);
    log::info("generation_published", {{"generation", to_string(published.generation)},
                                       {"reason", word(published.reason)},
                                       {"nodes", published.nodes},
                                       {"world_size", published.world_size},
                                       {"formed_in_seconds", seconds(published.formed_in)}});
  }

  void perform(const NodeJoined& joined) {
    is_status_stale = true;
    log::info("node_joined", {{"peer", joined.node.value}, {"as", joined.as}});
  }

  void perform(const NodeDeparted& departed) {
    is_status_stale = true;
    if (options.metrics) options.metrics->count(departed);
    const bool is_in_order =
        departed.evidence == Evidence::Left || departed.evidence == Evidence::Drained;
    (is_in_order ? log::info : log::warn)(
        "node_departed", {{"peer", departed.node.value}, {"evidence", word(departed.evidence)}});
  }

  void perform(const RestartCharged& charged) {
    is_status_stale = true;
    log::warn("restart_charged", {{"restarts_spent", charged.restarts_spent},
                                  {"restarts_max", options.config.max_restarts},
                                  {"peer", charged.cause.node.value},
                                  {"kind", word(charged.cause.kind)},
                                  {"cause", charged.cause.sentence}});
  }

  void perform(const CallRefused& refused) {
    if (options.metrics) options.metrics->count(refused);
    // Whoever is refused asks again: said when it changes, not each time.
    if (refused.node == last_refused.node && refused.refusal == last_refused.refusal) return;
    last_refused = refused;
    // After the end everybody who asks is told so: nothing a person must look at.
    const auto say = refused.refusal.reason == RefuseReason::Closed ? log::info : log::warn;
    say("call_refused", {{"peer", refused.node.value},
                         {"reason", word(refused.refusal.reason)},
                         {"why", refused.refusal.sentence}});
  }

  void perform(const JobClosed& closed) {
    is_status_stale = true;
    const auto say = closed.outcome == Outcome::Succeeded ? log::info : log::warn;
    say("job_closed", {{"outcome", word(closed.outcome)},
                       {"cause", closed.cause ? closed.cause->sentence : std::string()}});
    boost::asio::post(loop, [on_closed = on_closed, closed] { on_closed(closed); });
  }

  boost::asio::io_context& loop;
  Options options;
  std::function<void(JobClosed)> on_closed;
  StateMachine machine;
  boost::asio::steady_timer timer;
  std::optional<Instant> armed_for;  // the deadline that the timer stands for
  bool is_timer_set = false;
  std::map<Ticket, OnReply> open_calls;
  std::uint64_t last_ticket = 0;
  CallRefused last_refused;
  bool is_status_stale = false;  // something that the gauges show has changed
};

Service::Service(boost::asio::io_context& loop, Options options,
                 std::function<void(JobClosed)> on_closed)
    : impl_(std::make_unique<Impl>(loop, std::move(options), std::move(on_closed))) {
  impl_->arm_timer();
  impl_->show_status(std::chrono::steady_clock::now());
}

Service::~Service() {
  if (impl_->options.metrics) impl_->options.metrics->show_nothing();
}

Ticket Service::join(JoinRequest request, OnJoin on_reply) {
  return impl_->open_call<JoinReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::watch(WatchRequest request, OnWatch on_reply) {
  return impl_->open_call<WatchReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::heartbeat(HeartbeatRequest request, OnHeartbeat on_reply) {
  return impl_->open_call<HeartbeatReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::leave(LeaveRequest request, OnAcknowledge on_reply) {
  impl_->is_status_stale = true;
  return impl_->open_call<LeaveReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::publish(PublishRequest request, OnAcknowledge on_reply) {
  return impl_->open_call<PublishReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::lookup(LookupRequest request, OnLookup on_reply) {
  return impl_->open_call<LookupReceived>(std::move(request), std::move(on_reply));
}
Ticket Service::drain(NodeId node, OnAcknowledge on_reply) {
  impl_->is_status_stale = true;
  return impl_->open_call<DrainReceived>(std::move(node), std::move(on_reply));
}
Ticket Service::stop(std::string reason, OnAcknowledge on_reply) {
  return impl_->open_call<StopReceived>(std::move(reason), std::move(on_reply));
}

void Service::end_call(Ticket ticket) {
  // Answered meanwhile, the answer posted but not yet seen by the front end: nothing is held.
  if (impl_->open_calls.erase(ticket) == 0) return;
  impl_->take_in(CallEnded{ticket});
}

Status Service::status() const { return impl_->machine.status(std::chrono::steady_clock::now()); }
const std::string& Service::run_id() const { return impl_->options.config.run_id; }

}  // namespace lrun::rendezvous
