#include "trainer/comm/engine.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace lrun::comm {
namespace {

using namespace std::chrono_literals;

// Operations that may wait for their turn; more means the compute thread is far ahead.
constexpr std::size_t kQueuedMax = 256;
// While payload moves, control connections and aborts are looked at this often.
constexpr auto kLookInterval = 1ms;
constexpr auto kPulseInterval = 1s;
// Between the end of a peer's payload connection and of its control connection.
constexpr auto kLastWords = 200ms;
// A rank that misses several peers at its deadline lets others speak first for this long.
constexpr auto kSecondOpinion = 500ms;

std::string to_text(GlobalRank rank) { return "rank " + std::to_string(rank.value); }

std::string to_text(const std::vector<GlobalRank>& ranks) {
  std::string text;
  for (const GlobalRank rank : ranks) text += (text.empty() ? "" : ", ") + to_text(rank);
  return text;
}

}  // namespace

Engine::Engine(GlobalRank rank, std::chrono::milliseconds deadline, std::vector<Peer> peers,
               Doorbell doorbell)
    : rank_(rank), deadline_(deadline), peers_(std::move(peers)), doorbell_(std::move(doorbell)) {
  next_pulse_ = Clock::now() + kPulseInterval;
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  is_stopping_ = true;
  doorbell_.ring();
  thread_.join();
}

void Engine::submit(std::unique_ptr<Operation> operation) {
  {
    std::unique_lock lock(mutex_);
    // Bounded: the operation at the head of the queue has a deadline.
    has_room_.wait(lock, [this] { return death() || queue_.size() < kQueuedMax; });
    if (const auto failure = death()) {
      operation->completion->fail(*failure);
      return;
    }
    queue_.push_back(std::move(operation));
  }
  doorbell_.ring();
}

void Engine::abort(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (abort_) return;
    abort_ = Failure{Failure::Kind::Aborted, rank_, to_text(rank_) + " aborted: " + reason};
    is_abort_requested_ = true;
  }
  has_room_.notify_all();
  doorbell_.ring();
}

// With mutex_ held. What every operation from now on ends with: an abort counts from the moment it
// is called, before the communication thread has heard of it.
std::optional<Failure> Engine::death() const { return failure_ ? failure_ : abort_; }

Counters Engine::counters() const {
  return {.sent_bytes = sent_bytes_, .received_bytes = received_bytes_, .operations = operations_};
}

void Engine::on_pulse(std::function<void(GlobalRank)> pulse) {
  const std::lock_guard lock(pulse_mutex_);
  pulse_ = std::move(pulse);
}

void Engine::run() {
  while (!is_stopping_) {
    if (is_abort_requested_.exchange(false)) perform_abort();
    const bool moved = step();
    if (moved && Clock::now() < next_look_) continue;
    if (!moved) sleep();
    look_around();
  }
  // An abort just before the end is still for the peers to hear.
  if (is_abort_requested_.exchange(false)) perform_abort();
  die({Failure::Kind::Aborted, rank_, to_text(rank_) + " aborted: the Comm was closed"});
  for (Peer& peer : peers_) peer.control.send_goodbye();
}

// Moves the current operation on. True when something moved.
bool Engine::step() {
  if (!current_) start_next();
  if (!current_) return false;
  try {
    const bool moved = current_->advance();
    if (current_->is_complete()) {
      finish();
      return true;
    }
    if (moved) return true;
  } catch (const Mismatch& mismatch) {
    fail({Failure::Kind::Mismatch, rank_, mismatch.what()});
    return true;
  }
  check_peers();
  return false;
}

void Engine::start_next() {
  std::unique_ptr<Operation> next;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty() || death()) return;
    next = std::move(queue_.front());
    queue_.pop_front();
  }
  has_room_.notify_one();
  current_ = std::make_unique<Execution>(std::move(next), peers_, rank_);
  current_until_ = Clock::now() + deadline_;
  doubted_until_.reset();
  is_listening_to_others_ = false;
}

void Engine::finish() {
  sent_bytes_ += current_->sent_bytes();
  received_bytes_ += current_->received_bytes();
  ++operations_;
  const auto completion = current_->operation().completion;
  current_.reset();
  completion->succeed();
}

void Engine::sleep() {
  doorbell_.arm();
  if (!has_work()) wait_for_events();
  doorbell_.disarm();
}

// The last look after arm(): whatever became visible before is found here, whatever comes later
// rings.
bool Engine::has_work() {
  if (is_stopping_) return true;
  {
    const std::lock_guard lock(mutex_);
    if (is_abort_requested_) return true;
    if (!current_ && !queue_.empty()) return true;
  }
  return current_ && step();
}

void Engine::wait_for_events() {
  std::vector<pollfd> descriptors{{doorbell_.descriptor(), POLLIN, 0}};
  for (const Peer& peer : peers_) {
    descriptors.push_back({peer.control.descriptor(), POLLIN, 0});
    const short events = current_ ? current_->poll_events(peer) : short{0};
    if (events != 0) descriptors.push_back({peer.link->descriptor(), events, 0});
  }
  auto until = next_pulse_;
  if (current_) until = std::min(until, current_until_);
  if (current_ && doubted_until_) until = std::min(until, *doubted_until_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  ::poll(descriptors.data(), descriptors.size(), static_cast<int>(std::max(left, 0ms).count()));
  if (descriptors.front().revents != 0) doorbell_.take_ring();
}

void Engine::perform_abort() {
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = abort_;
  }
  fail(*failure);
}

// Everything but payload: what peers say, deadlines, the pulse.
void Engine::look_around() {
  hear_peers();
  const auto now = Clock::now();
  check_deadline(now);
  pulse(now);
  next_look_ = now + kLookInterval;
}

// Whoever dies says why before it leaves, also of what it heard from others: so the first cause
// arrives before its consequences, from whomever.
void Engine::hear_peers() {
  for (Peer& peer : peers_) {
    for (const Failure& failure : peer.control.receive()) fail(failure);
  }
}

void Engine::check_deadline(Clock::time_point now) {
  if (!current_ || now < current_until_) return;
  const auto silent = current_->waiting_for();
  if (silent.size() > 1 && !std::exchange(is_listening_to_others_, true)) {
    // Some may only be victims, still in the operation before: they know better who is silent.
    current_until_ += kSecondOpinion;
    return;
  }
  fail({Failure::Kind::DeadlineExceeded, silent.empty() ? rank_ : silent.front(),
        current_->name() + " did not end within " + std::to_string(deadline_.count()) + " ms; " +
            to_text(rank_) + " waits for " + to_text(silent)});
}

void Engine::check_peers() {
  const Peer* lost = current_->find_lost();
  if (lost == nullptr) {
    doubted_until_.reset();
    return;
  }
  hear_peers();
  if (!current_) return;
  if (!lost->control.is_gone()) {
    // Only its payload connection has ended: what it has to say may still be on the way.
    if (!doubted_until_) doubted_until_ = Clock::now() + kLastWords;
    if (Clock::now() < *doubted_until_) return;
  }
  fail({Failure::Kind::PeerLost, lost->rank,
        current_->name() + " lost " + to_text(lost->rank) +
            (lost->control.said_goodbye() ? ": it has left" : ": its connection closed")});
}

void Engine::pulse(Clock::time_point now) {
  if (now < next_pulse_) return;
  next_pulse_ = now + kPulseInterval;
  const auto waiting = current_ ? current_->waiting_for() : std::vector<GlobalRank>{};
  const std::lock_guard lock(pulse_mutex_);
  if (pulse_) pulse_(waiting.empty() ? rank_ : waiting.front());
}

void Engine::fail(const Failure& failure) {
  if (!die(failure)) return;
  for (Peer& peer : peers_) peer.control.send(failure);
}

// The first failure counts, for all operations there are and will be.
bool Engine::die(const Failure& failure) {
  std::deque<std::unique_ptr<Operation>> pending;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    failure_ = failure;
    pending.swap(queue_);
  }
  has_room_.notify_all();
  if (current_) {
    const auto completion = current_->operation().completion;
    current_.reset();
    completion->fail(failure);
  }
  for (const auto& operation : pending) operation->completion->fail(failure);
  return true;
}

}  // namespace lrun::comm
