#include "rendezvous/mailbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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
  static_cast<void>(letter.release());  // the list owns it now
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
                          self->collect(nullptr);
                          self->work_off();
                          if (self->listener_) self->await();
                        });
}

void Mailbox::work_until(const std::function<bool()>& is_enough, Duration limit) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    collect(nullptr);
    work_off();
    const Duration left = deadline - std::chrono::steady_clock::now();
    if (is_enough() || left <= Duration{}) return;
    pollfd bell{.fd = bell_.get(), .events = POLLIN, .revents = 0};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left);
    ::poll(&bell, 1, static_cast<int>(wait.count()));
  }
}

void Mailbox::close() {
  if (!listener_) return;
  listener_.reset();
  collect(closed_mark<Letter>());
  work_off();
}

// Silences the bell first: a letter left meanwhile then rings again.
void Mailbox::collect(Letter* taken_in_its_place) {
  std::uint64_t rung = 0;
  [[maybe_unused]] const ssize_t silenced = ::read(bell_.get(), &rung, sizeof rung);
  Letter* letter = newest_.exchange(taken_in_its_place, std::memory_order_acq_rel);
  Letter* oldest_first = nullptr;
  while (letter != nullptr) {
    Letter* const next = std::exchange(letter->next, oldest_first);
    oldest_first = std::exchange(letter, next);
  }
  while (oldest_first != nullptr) {
    const std::unique_ptr<Letter> oldest(std::exchange(oldest_first, oldest_first->next));
    collected_.push_back(std::move(oldest->work));
  }
}

void Mailbox::work_off() {
  while (!collected_.empty()) {
    const Work work = std::move(collected_.front());
    collected_.pop_front();
    work();
  }
}

}  // namespace lrun::rendezvous
