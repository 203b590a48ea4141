// Where gRPC's threads leave work for the loop: a lock-free list and an eventfd.
//
// Owns what was left and not yet done. After close() nothing of it touches the loop any more, so a
// late callback of gRPC may outlive server, client and loop. Used by rendezvous/{server,client}.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "base/fd.h"
#include "proto/ids.h"

namespace lrun::rendezvous {

class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  using Work = std::function<void()>;

  // Keeps the loop's run() busy until close(). Throws std::system_error without descriptors.
  static std::shared_ptr<Mailbox> open(boost::asio::io_context& loop);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread; never blocks. `work` runs once on the loop's thread, in the order of leaving. False
  // after close(): `work` is dropped, and the caller must do what cannot be left undone.
  bool leave(Work work);

  // Loop's thread: does what is left until `is_enough`, blocking for at most `limit`. For owners
  // that must not die before gRPC's threads have said their last.
  void work_until(const std::function<bool()>& is_enough, Duration limit);

  // Loop's thread: does what was left, then refuses more.
  void close();

 private:
  struct Letter {
    Work work;
    Letter* next = nullptr;
  };

  explicit Mailbox(boost::asio::io_context& loop);
  void await();
  void collect(Letter* taken_in_its_place);
  void work_off();

  std::atomic<Letter*> newest_{nullptr};
  std::deque<Work> collected_;  // the loop's; a work may call work_off again
  Fd bell_;
  std::unique_ptr<boost::asio::posix::stream_descriptor> listener_;  // null once closed
};

}  // namespace lrun::rendezvous
