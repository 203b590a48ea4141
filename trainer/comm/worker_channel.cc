#include "trainer/comm/worker_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>

#include "trainer/comm/errors.h"

namespace lrun::comm {
namespace {

// An agent that lets this much pile up gets no more progress lines …
constexpr std::size_t kProgressBytesMax = 64 * 1024;
// … and at this much it is taken for dead.
constexpr std::size_t kOutgoingBytesMax = 1024 * 1024;
// Values of one generation: an address for each rank and a few more.
constexpr std::size_t kValuesMax = 64 * 1024;
// The reader looks for a stop at least this often, whatever happens to its wake-up.
constexpr int kPollMilliseconds = 1000;

void require_socket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
    throw std::runtime_error("LRUN_CHANNEL_FD=" + std::to_string(descriptor) +
                             " is no stream socket; leave it as lrun set it, or unset it");
  }
}

}  // namespace

std::unique_ptr<WorkerChannel> WorkerChannel::open(const WorkerEnv& worker, bool live) {
  if (worker.channel_fd < 0) return nullptr;
  require_socket(worker.channel_fd);
  // Not for programs that the worker starts in turn.
  ::fcntl(worker.channel_fd, F_SETFD, FD_CLOEXEC);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) {
    throw std::system_error(errno, std::generic_category(), "cannot create an event descriptor");
  }
  std::unique_ptr<WorkerChannel> opened(new WorkerChannel(Fd(worker.channel_fd), std::move(wake)));
  opened->send(channel::Hello{.live = live});
  return opened;
}

WorkerChannel::WorkerChannel(Fd socket, Fd wake)
    : socket_(std::move(socket)), wake_(std::move(wake)) {
  thread_ = std::thread([this] { run(); });
}

WorkerChannel::~WorkerChannel() {
  is_stopping_ = true;
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  const std::lock_guard lock(mutex_);
  flush();
}

void WorkerChannel::send(const channel::FromWorker& message) {
  const std::string line = channel::to_line(message);
  const std::lock_guard lock(mutex_);
  if (!is_open_) return;
  const bool is_progress = std::holds_alternative<channel::Progress>(message);
  if (is_progress && outgoing_.size() + line.size() > kProgressBytesMax) return;
  outgoing_ += line;
  if (outgoing_.size() > kOutgoingBytesMax || !flush()) {
    is_open_ = false;
    changed_.notify_all();
  } else if (!outgoing_.empty()) {
    ::eventfd_write(wake_.get(), 1);  // the reader thread sends the rest when there is room
  }
}

bool WorkerChannel::flush() {
  while (!outgoing_.empty()) {
    const auto sent =
        ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

std::string WorkerChannel::lookup(const std::string& key, std::chrono::milliseconds deadline) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
  }
  send(channel::LookupValue{key});
  std::unique_lock lock(mutex_);
  const bool ended = !changed_.wait_until(lock, until, [&] {
    return values_.count(key) > 0 || !is_open_ || is_stop_requested_ || abort_;
  });
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  if (ended) {
    throw DeadlineExceeded("nobody has published '" + key + "' within " +
                           std::to_string(deadline.count()) + " ms");
  }
  if (abort_) throw std::runtime_error("the generation has ended: " + abort_->reason);
  if (is_stop_requested_) throw std::runtime_error("the job is closed");
  throw std::runtime_error("the channel to the agent has closed");
}

bool WorkerChannel::is_open() const {
  const std::lock_guard lock(mutex_);
  return is_open_;
}

bool WorkerChannel::is_drain_requested() const {
  const std::lock_guard lock(mutex_);
  return is_drain_requested_;
}

bool WorkerChannel::is_stop_requested() const {
  const std::lock_guard lock(mutex_);
  return is_stop_requested_;
}

std::optional<channel::Abort> WorkerChannel::abort_request() const {
  const std::lock_guard lock(mutex_);
  return abort_;
}

std::optional<channel::NewAssignment> WorkerChannel::new_assignment() const {
  const std::lock_guard lock(mutex_);
  return assignment_;
}

void WorkerChannel::on_abort(std::function<void(const channel::Abort&)> callback) {
  const std::lock_guard lock(callback_mutex_);
  on_abort_ = std::move(callback);
}

void WorkerChannel::run() {
  while (!is_stopping_) {
    short events = POLLIN;
    {
      const std::lock_guard lock(mutex_);
      if (!is_open_) return;
      if (!outgoing_.empty()) events |= POLLOUT;
    }
    pollfd descriptors[] = {{socket_.get(), events, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(descriptors, 2, kPollMilliseconds);
    eventfd_t wakes = 0;
    ::eventfd_read(wake_.get(), &wakes);
    bool is_alive = descriptors[0].revents == 0 || read_some();
    {
      const std::lock_guard lock(mutex_);
      is_alive = is_alive && flush();
    }
    if (!is_alive) return end();
  }
}

// False when the agent has gone or says what is not a message.
bool WorkerChannel::read_some() {
  char bytes[4096];
  const auto received = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (received < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (received == 0) return false;
  for (const std::string& line : reader_.feed({bytes, static_cast<std::size_t>(received)})) {
    const auto parsed = channel::parse_to_worker(line);
    const auto* message = std::get_if<channel::ToWorker>(&parsed);
    if (message == nullptr) return false;
    accept(*message);
  }
  return !reader_.is_broken();
}

void WorkerChannel::end() {
  const std::lock_guard lock(mutex_);
  is_open_ = false;
  changed_.notify_all();
}

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

}  // namespace

void WorkerChannel::accept(const channel::ToWorker& message) {
  {
    const std::lock_guard lock(mutex_);
    std::visit(Overloaded{[this](const channel::NewAssignment& assignment) {
                            assignment_ = assignment;
                            abort_.reset();
                            values_.clear();  // of the old generation
                          },
                          [this](const channel::Abort& abort) { abort_ = abort; },
                          [this](const channel::Value& value) {
                            if (values_.size() < kValuesMax) values_[value.key] = value.value;
                          },
                          [this](const channel::Drain&) { is_drain_requested_ = true; },
                          [this](const channel::Stop&) { is_stop_requested_ = true; }},
               message);
    changed_.notify_all();
  }
  if (const auto* abort = std::get_if<channel::Abort>(&message)) {
    const std::lock_guard lock(callback_mutex_);
    if (on_abort_) on_abort_(*abort);
  }
}

}  // namespace lrun::comm
