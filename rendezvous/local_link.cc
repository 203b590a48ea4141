#include "rendezvous/local_link.h"

#include <set>
#include <utility>

#include "rendezvous/service.h"

namespace lrun::rendezvous {

struct LocalLink::Impl : std::enable_shared_from_this<LocalLink::Impl> {
  explicit Impl(Service& served) : service(served) {}

  // Opens a call whose answer is dropped once the link is gone. The service posts its answers, so
  // the ticket is noted before its answer comes.
  template <class Reply, class Request, class Wanted>
  void call(Ticket (Service::*method)(Request, std::function<void(Reply)>), const Request& request,
            OnAnswer<Wanted> on_answer) {
    const auto noted = std::make_shared<Ticket>();
    *noted = (service.*method)(
        request, [weak = weak_from_this(), noted, on_answer = std::move(on_answer)](Reply reply) {
          const auto self = weak.lock();
          if (!self || self->open_calls.erase(*noted) == 0) return;
          on_answer(Answer<Wanted>(std::in_place_index<0>, std::move(reply)));
        });
    open_calls.insert(*noted);
  }

  Service& service;
  std::set<Ticket> open_calls;
};

LocalLink::LocalLink(Service& service) : impl_(std::make_shared<Impl>(service)) {}

LocalLink::~LocalLink() {
  const std::set<Ticket> open_calls = std::exchange(impl_->open_calls, {});
  for (const Ticket ticket : open_calls) impl_->service.end_call(ticket);
}

void LocalLink::join(const JoinRequest& request, OnAnswer<JoinReply> on_answer) {
  impl_->call(&Service::join, request, std::move(on_answer));
}
void LocalLink::watch(const WatchRequest& request, OnAnswer<WatchReply> on_answer) {
  impl_->call(&Service::watch, request, std::move(on_answer));
}
void LocalLink::heartbeat(const HeartbeatRequest& request, OnAnswer<HeartbeatAnswer> on_answer) {
  impl_->call(&Service::heartbeat, request, std::move(on_answer));
}
void LocalLink::leave(const LeaveRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) {
  impl_->call(&Service::leave, request, std::move(on_answer));
}
void LocalLink::publish(const PublishRequest& request, OnAnswer<AcknowledgeAnswer> on_answer) {
  impl_->call(&Service::publish, request, std::move(on_answer));
}
void LocalLink::lookup(const LookupRequest& request, OnAnswer<LookupReply> on_answer) {
  impl_->call(&Service::lookup, request, std::move(on_answer));
}
std::string LocalLink::local_address() const { return "127.0.0.1"; }

}  // namespace lrun::rendezvous
