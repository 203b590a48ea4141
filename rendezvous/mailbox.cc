#include "rendezvous/mailbox.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace lrun::rendezvous {
namespace {

// Takes the place of the newest letter once the mailbox is closed. Never looked into.
template <class Letter>
Letter* closed_mark() {
  static Letter mark;
  return &mark;
}

}  // namespace

std::shared_ptr<Mailbox> Mailbox::open(boost::asio::io_context& loop) {
  std::shared_ptr<Mailbox> mailbox(new Mailbox(loop));
  mailbox->await();
  return mailbox;
}

Mailbox::Mailbox(boost::asio::io_context& loop) : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const int listened = bell_.is_open() ? ::fcntl(bell_.get(), F_DUPFD_CLOEXEC, 0) : -1;
  if (listened < 0) throw std::system_error(errno, std::generic_category(), "no eventfd");
  listener_ = std::make_unique<boost::asio::posix::stream_descriptor>(loop, listened);
}

Mailbox::~Mailbox() { close(); }

bool Mailbox::leave(Work work) {
  auto letter = std::make_unique<Letter>(Letter{.work = std::move(work)});
  Letter* newest = newest_.load(std::memory_order_acquire);
  do {
    if (newest == closed_mark<Letter>()) return false;
    letter->next = newest;
  } while (!newest_.compare_exchange_weak(newest, letter.get(), std::memory_order_acq_rel,
                                          std::memory_order_acquire));
  letter.release();
  // The first letter rings; later ones are found with it. The descriptor lives as long as this
  // object, which its caller holds; a full counter rings as well.
  if (newest == nullptr) {
    const std::uint64_t once = 1;
    [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &once, sizeof once);
  }
  return true;
}

void Mailbox::await() {
  listener_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [weak = weak_from_this()](const boost::system::error_code& error) {
                          const auto self = weak.lock();
                          if (error || !self || !self->listener_) return;
                          std::uint64_t rung = 0;
                          [[maybe_unused]] const ssize_t silenced =
                              ::read(self->bell_.get(), &rung, sizeof rung);
                          work_off(self->newest_.exchange(nullptr, std::memory_order_acq_rel));
                          if (self->listener_) self->await();
                        });
}

void Mailbox::close() {
  if (!listener_) return;
  listener_.reset();
  work_off(newest_.exchange(closed_mark<Letter>(), std::memory_order_acq_rel));
}

void Mailbox::work_off(Letter* newest_first) {
  Letter* oldest_first = nullptr;
  while (newest_first != nullptr) {
    Letter* const next = std::exchange(newest_first->next, oldest_first);
    oldest_first = std::exchange(newest_first, next);
  }
  while (oldest_first != nullptr) {
    const std::unique_ptr<Letter> letter(std::exchange(oldest_first, oldest_first->next));
    letter->work();
  }
}

}  // namespace lrun::rendezvous
