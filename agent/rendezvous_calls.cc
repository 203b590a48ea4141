#include "agent/rendezvous_calls.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "agent/retry_backoff.h"
#include "agent/service_outage.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

using rendezvous::AcknowledgeAnswer;
using rendezvous::Answer;
using rendezvous::HeartbeatAnswer;
using rendezvous::Unreachable;

// A service that answers "ask again" at once must not be asked in a circle.
constexpr Duration kAskAgainInterval = std::chrono::milliseconds(50);
constexpr Duration kEndLookInterval = std::chrono::milliseconds(5);
// A heartbeat answered later than this is counted as late.
constexpr Duration kLateAfter = std::chrono::seconds(1);

Instant now() { return std::chrono::steady_clock::now(); }

// One repeated call: its waits between failures, and when it was last asked.
struct Repetition {
  explicit Repetition(std::uint64_t seed) : backoff(seed, RetryBackoff::Limits{}) {}
  // How long to wait before asking again after an answer without news.
  Duration until_ask_again() const {
    return std::max(Duration::zero(), asked_at + kAskAgainInterval - now());
  }
  RetryBackoff backoff;
  Instant asked_at{};
};

}  // namespace

struct RendezvousCalls::Impl : std::enable_shared_from_this<RendezvousCalls::Impl> {
  Impl(boost::asio::io_context& the_loop, rendezvous::Link& the_link, std::uint64_t the_seed,
       RendezvousCallbacks the_callbacks)
      : loop(the_loop), link(the_link), seed(the_seed), callbacks(std::move(the_callbacks)) {}

  void after(Duration wait, std::function<void()> act) {
    auto timer = std::make_shared<boost::asio::steady_timer>(loop, wait);
    timer->async_wait([weak = weak_from_this(), timer,
                       act = std::move(act)](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (self && !error && !self->has_ended) act();
    });
  }

  // An answer's way back: dropped when the agent has ended or is gone.
  template <class Reply, class Take>
  rendezvous::OnAnswer<Reply> on_answer(Take take) {
    return [weak = weak_from_this(), take = std::move(take)](Answer<Reply> answer) {
      const auto self = weak.lock();
      if (!self) return;
      if (const auto* failure = std::get_if<Unreachable>(&answer)) {
        if (!self->has_ended) self->unreachable(*failure);
        take(*self, static_cast<const Reply*>(nullptr), failure->is_final);
      } else {
        if (!self->has_ended) self->outage.answered(now());
        take(*self, &std::get<Reply>(answer), false);
      }
    };
  }

  void unreachable(const Unreachable& failure) {
    outage.failed(now(), failure.sentence);
    callbacks.on_event(ServiceUnreachable{.host_answered = failure.host_answered,
                                          .is_final = failure.is_final,
                                          .sentence = failure.sentence});
  }

  // The address that peers can reach, where the configuration does not name one.
  NodeFacts complete(NodeFacts facts) const {
    if (facts.address.empty()) facts.address = link.local_address();
    return facts;
  }

  // --- join --------------------------------------------------------------------------------------

  void join(std::uint64_t number) {
    if (number != join_number || has_ended) return;
    join_repetition.asked_at = now();
    JoinRequest request = join_request;
    request.facts = complete(std::move(request.facts));
    link.join(request,
              on_answer<JoinReply>([number](Impl& self, const JoinReply* reply, bool is_final) {
                self.joined(number, reply, is_final);
              }));
  }

  void joined(std::uint64_t number, const JoinReply* reply, bool is_final) {
    const auto* refusal = reply ? std::get_if<Refusal>(reply) : nullptr;
    // A refusal for good may cross the Join that replaces the one it answers; it stays true.
    const bool is_last_word = refusal && !is_retryable(refusal->reason);
    if (has_ended || (number != join_number && !is_last_word)) return;
    if (!reply) {
      if (is_final) return;
      return after(join_repetition.backoff.next(), [this, number] { join(number); });
    }
    join_repetition.backoff.reset();
    if (std::holds_alternative<AskAgain>(*reply)) {
      return after(join_repetition.until_ask_again(), [this, number] { join(number); });
    }
    ++join_number;  // answered: nothing repeats it any more
    if (const auto* assignment = std::get_if<Assignment>(reply)) {
      callbacks.on_event(Assigned{*assignment});
    } else {
      callbacks.on_event(JoinFailed{std::get<Refusal>(*reply)});
    }
  }

  // --- watch -------------------------------------------------------------------------------------

  void watch() {
    if (has_ended) return;
    watch_repetition.asked_at = now();
    link.watch(watch_request,
               on_answer<WatchReply>([](Impl& self, const WatchReply* reply, bool is_final) {
                 self.watched(reply, is_final);
               }));
  }

  void watched(const WatchReply* reply, bool is_final) {
    if (has_ended || is_final) return;
    if (!reply) return after(watch_repetition.backoff.next(), [this] { watch(); });
    if (const auto* directive = std::get_if<Directive>(reply)) {
      callbacks.on_event(DirectiveReceived{.directive = *directive});
    } else if (const auto* refusal = std::get_if<Refusal>(reply)) {
      callbacks.on_refusal(*refusal);
      // It may be taken again once this node has joined; a refused watch is no reason to hurry.
      return after(watch_repetition.backoff.next(), [this] { watch(); });
    }
    watch_repetition.backoff.reset();
    after(watch_repetition.until_ask_again(), [this] { watch(); });
  }

  // --- heartbeat ---------------------------------------------------------------------------------

  void heartbeat(HeartbeatRequest request) {
    request.facts = complete(std::move(request.facts));
    const Instant sent_at = now();
    const Generation about = request.running ? request.running->generation : Generation{};
    link.heartbeat(request, on_answer<HeartbeatAnswer>(
                                [sent_at, about](Impl& self, const HeartbeatAnswer* answer, bool) {
                                  self.heartbeat_answered(sent_at, about, answer);
                                }));
  }

  void heartbeat_answered(Instant sent_at, Generation about, const HeartbeatAnswer* answer) {
    if (has_ended) return;
    if (!answer) return callbacks.on_heartbeat(HeartbeatResult::Failed);
    const bool is_late = now() - sent_at > kLateAfter;
    callbacks.on_heartbeat(is_late ? HeartbeatResult::Late : HeartbeatResult::Answered);
    if (const auto* refusal = std::get_if<Refusal>(answer)) return callbacks.on_refusal(*refusal);
    const auto& reply = std::get<HeartbeatReply>(*answer);
    callbacks.on_event(
        HeartbeatAnswered{.sent_at = sent_at, .interval = reply.interval, .lease = reply.lease});
    if (!std::holds_alternative<Continue>(reply.directive)) {
      callbacks.on_event(DirectiveReceived{.directive = reply.directive, .about = about});
    }
  }

  // --- leave, publish, lookup --------------------------------------------------------------------

  void leave(const LeaveRequest& request, const std::shared_ptr<Repetition>& repetition) {
    link.leave(
        request,
        on_answer<AcknowledgeAnswer>(
            [request, repetition](Impl& self, const AcknowledgeAnswer* answer, bool is_final) {
              // Repeated even at the end: it is what the end waits for.
              if (answer || is_final) {
                --self.leaves_open;
                return;
              }
              auto timer = std::make_shared<boost::asio::steady_timer>(self.loop,
                                                                       repetition->backoff.next());
              timer->async_wait([weak = self.weak_from_this(), timer, request,
                                 repetition](const boost::system::error_code& error) {
                const auto again = weak.lock();
                if (again && !error) again->leave(request, repetition);
              });
            }));
  }

  void publish(const PublishRequest& request, const std::shared_ptr<Repetition>& repetition) {
    if (request.generation != generation) return;
    link.publish(
        request,
        on_answer<AcknowledgeAnswer>(
            [request, repetition](Impl& self, const AcknowledgeAnswer* answer, bool is_final) {
              if (self.has_ended || is_final) return;
              if (!answer) {
                return self.after(repetition->backoff.next(), [&self, request, repetition] {
                  self.publish(request, repetition);
                });
              }
              const auto* refusal = std::get_if<Refusal>(answer);
              if (refusal && refusal->reason != RefuseReason::StaleGeneration) {
                log::warn("publish_refused", {{"key", request.key}, {"reason", refusal->sentence}});
              }
            }));
  }

  void lookup(LocalRank local_rank, const LookupRequest& request,
              const std::shared_ptr<Repetition>& repetition) {
    if (request.generation != generation) return;
    repetition->asked_at = now();
    link.lookup(request,
                on_answer<LookupReply>([local_rank, request, repetition](
                                           Impl& self, const LookupReply* reply, bool is_final) {
                  self.looked_up(local_rank, request, repetition, reply, is_final);
                }));
  }

  void looked_up(LocalRank local_rank, const LookupRequest& request,
                 const std::shared_ptr<Repetition>& repetition, const LookupReply* reply,
                 bool is_final) {
    if (has_ended || is_final || request.generation != generation) return;
    if (const auto* value = reply ? std::get_if<std::string>(reply) : nullptr) {
      return callbacks.on_event(LookupAnswered{.local_rank = local_rank,
                                               .key = request.key,
                                               .value = *value,
                                               .generation = request.generation});
    }
    // The generation has ended for the service: this node will hear it soon.
    const bool is_refused = reply && std::holds_alternative<Refusal>(*reply);
    const bool is_just_held = reply && !is_refused;
    const Duration wait = is_just_held ? repetition->until_ask_again() : repetition->backoff.next();
    after(wait,
          [this, local_rank, request, repetition] { lookup(local_rank, request, repetition); });
  }

  // --- end ---------------------------------------------------------------------------------------

  void end(const std::function<void()>& on_ended, Instant deadline) {
    has_ended = true;
    if (leaves_open == 0 || now() >= deadline) {
      if (leaves_open > 0) log::warn("leave_not_answered", {{"limit_seconds", 3}});
      return boost::asio::post(loop, on_ended);
    }
    end_timer.expires_after(kEndLookInterval);
    end_timer.async_wait(
        [weak = weak_from_this(), on_ended, deadline](const boost::system::error_code& error) {
          const auto self = weak.lock();
          if (self && !error) self->end(on_ended, deadline);
        });
  }

  std::shared_ptr<Repetition> new_repetition() { return std::make_shared<Repetition>(++seed); }

  boost::asio::io_context& loop;
  rendezvous::Link& link;
  std::uint64_t seed;
  RendezvousCallbacks callbacks;
  ServiceOutage outage;
  std::uint64_t join_number = 0;
  JoinRequest join_request;
  Repetition join_repetition{seed};
  bool is_watching = false;
  WatchRequest watch_request;
  Repetition watch_repetition{seed};
  Generation generation;
  int leaves_open = 0;
  bool has_ended = false;
  boost::asio::steady_timer end_timer{loop};
};

RendezvousCalls::RendezvousCalls(boost::asio::io_context& loop, rendezvous::Link& link,
                                 std::uint64_t seed, RendezvousCallbacks callbacks)
    : impl_(std::make_shared<Impl>(loop, link, seed, std::move(callbacks))) {}
RendezvousCalls::~RendezvousCalls() = default;

void RendezvousCalls::join(const JoinRequest& request) {
  impl_->join_request = request;
  impl_->join_repetition.backoff.reset();
  impl_->join(++impl_->join_number);
  if (std::exchange(impl_->is_watching, true)) return;
  impl_->watch_request = {.node = request.facts.node,
                          .incarnation = request.facts.incarnation,
                          .run_id = request.run_id};
  impl_->watch();
}

void RendezvousCalls::heartbeat(const HeartbeatRequest& request) { impl_->heartbeat(request); }

void RendezvousCalls::leave(const LeaveRequest& request) {
  ++impl_->leaves_open;
  impl_->leave(request, impl_->new_repetition());
}

void RendezvousCalls::publish(const PublishRequest& request) {
  impl_->publish(request, impl_->new_repetition());
}

void RendezvousCalls::lookup(LocalRank local_rank, const LookupRequest& request) {
  impl_->lookup(local_rank, request, impl_->new_repetition());
}

void RendezvousCalls::enter_generation(Generation generation) { impl_->generation = generation; }

void RendezvousCalls::end(const std::function<void()>& on_ended) {
  impl_->end(on_ended, now() + kLeaveLimit);
}

}  // namespace lrun::agent
