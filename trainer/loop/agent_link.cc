#include "trainer/loop/agent_link.h"

#include <chrono>

namespace lrun::loop {
namespace {

constexpr Duration kSendPeriod = std::chrono::seconds(1);

}  // namespace

AgentLink::AgentLink(comm::WorkerChannel* channel, comm::Comm& comm)
    : channel_(channel), comm_(comm) {
  if (channel_ == nullptr) return;
  comm_.on_pulse([this](GlobalRank waiting_for) { pulse(waiting_for); });
}

AgentLink::~AgentLink() {
  if (channel_ != nullptr) comm_.on_pulse(nullptr);
}

void AgentLink::progress(Instant now, std::int64_t step, std::int64_t samples,
                         double samples_per_second, bool is_logged) {
  if (channel_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  newest_ = {.step = step,
             .samples = samples,
             .activity = channel::Activity::Computing,
             .peer = std::nullopt,
             .samples_per_second = samples_per_second};
  if (!is_logged && now < next_send_) return;
  next_send_ = now + kSendPeriod;
  channel_->send(newest_);
}

void AgentLink::saving() {
  if (channel_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  newest_.activity = channel::Activity::Saving;
  channel_->send(newest_);
}

void AgentLink::checkpoint_saved(std::int64_t step, const std::string& path) {
  if (channel_ != nullptr) channel_->send(channel::CheckpointSaved{.step = step, .path = path});
}

void AgentLink::failed(const std::string& reason, std::optional<GlobalRank> peer) {
  if (channel_ != nullptr) channel_->send(channel::Failed{.reason = reason, .peer = peer});
}

bool AgentLink::wants_stop() const {
  return channel_ != nullptr && (channel_->is_drain_requested() || channel_->is_stop_requested());
}

void AgentLink::pulse(GlobalRank waiting_for) {
  const std::lock_guard lock(mutex_);
  channel::Progress now = newest_;
  if (waiting_for != comm_.rank() && now.activity == channel::Activity::Computing) {
    now.activity = channel::Activity::Waiting;
    now.peer = waiting_for;
  }
  channel_->send(now);
}

}  // namespace lrun::loop
