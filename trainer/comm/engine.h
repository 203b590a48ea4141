// The communication thread of one Comm: carries out operations in the order they were issued,
// watches peers, deadlines and aborts.
//
// Owns the peers, the queue and the death of the Comm: after the first failure every operation,
// queued or later, ends with that failure. Meets the compute thread in one bounded queue.
// Called by GroupComm; submit() from one thread, the rest from any.
//
//   compute thread ── submit ──► queue ──► Execution ⇄ links ⇄ peers
//   any thread ────── abort ───► failure ──► control connections ──► peers
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/comm/doorbell.h"
#include "trainer/comm/execution.h"
#include "trainer/comm/failure.h"
#include "trainer/comm/operation.h"
#include "trainer/comm/peer.h"

namespace lrun::comm {

class Engine {
 public:
  Engine(GlobalRank rank, std::chrono::milliseconds deadline, std::vector<Peer> peers,
         Doorbell doorbell);
  // Ends what is pending with Aborted, says goodbye to the peers.
  ~Engine();
  Engine(const Engine&) = delete;

  // Waits while the queue is full. Never throws the operation's error: its completion has it.
  void submit(std::unique_ptr<Operation> operation);
  void abort(const std::string& reason);
  Counters counters() const;
  void on_pulse(std::function<void(GlobalRank)> pulse);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool step();
  void start_next();
  void finish();
  void perform_abort();
  void look_around();
  void hear_peers();
  void sleep();
  bool has_work();
  void wait_for_events();
  void check_deadline(Clock::time_point now);
  void check_peers();
  std::optional<Failure> death() const;
  void pulse(Clock::time_point now);
  // Dies and tells the peers; or only dies, false when dead already.
  void fail(const Failure& failure);
  bool die(const Failure& failure);

  const GlobalRank rank_;
  const std::chrono::milliseconds deadline_;

  // Of the communication thread.
  std::vector<Peer> peers_;
  std::unique_ptr<Execution> current_;
  Clock::time_point current_until_;
  std::optional<Clock::time_point> doubted_until_;  // a peer of the current operation seems lost
  bool is_listening_to_others_ = false;             // past the deadline, for a second opinion
  Clock::time_point next_look_;
  Clock::time_point next_pulse_;

  Doorbell doorbell_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_abort_requested_ = false;
  std::atomic<std::uint64_t> sent_bytes_ = 0;
  std::atomic<std::uint64_t> received_bytes_ = 0;
  std::atomic<std::uint64_t> operations_ = 0;

  mutable std::mutex mutex_;  // what the threads share: the next four
  std::condition_variable has_room_;
  std::deque<std::unique_ptr<Operation>> queue_;
  std::optional<Failure> abort_;
  std::optional<Failure> failure_;

  std::mutex pulse_mutex_;  // held during a call of pulse_: on_pulse() returns when none runs
  std::function<void(GlobalRank)> pulse_;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace lrun::comm
