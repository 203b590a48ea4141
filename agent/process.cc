#include "agent/process.h"

#include <fcntl.h>
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "agent/descriptor_watch.h"
#include "agent/memory_kills.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

// A keeper that leaves so many orders unread is stopped or stuck: it is given up.
constexpr std::size_t kOrdersMax = 4096;

struct QueuedOrder {
  Order order;
  SpawnDescriptors descriptors;
};

}  // namespace

struct Processes::Impl : std::enable_shared_from_this<Processes::Impl> {
  Impl(boost::asio::io_context& the_loop, Keeper the_keeper, ProcessCallbacks the_callbacks)
      : loop(the_loop), keeper(std::move(the_keeper)), callbacks(std::move(the_callbacks)) {}

  void watch_keeper() {
    // A duplicate: the keeper's handle closes its own.
    Fd own(::fcntl(keeper->connection().get(), F_DUPFD_CLOEXEC, 0));
    watch = std::make_unique<DescriptorWatch>(loop, std::move(own));
    watch->on_readable([this] { take_reports(); });
  }

  void order(QueuedOrder order) {
    if (!watch) return;
    queue.push_back(std::move(order));
    if (queue.size() > kOrdersMax) return lose_keeper("it takes no orders");
    if (queue.size() == 1) send_orders();
  }

  void send_orders() {
    while (!queue.empty()) {
      const QueuedOrder& next = queue.front();
      const bool is_spawn = next.order.kind == OrderKind::Spawn;
      if (!send_order(keeper->connection(), next.order, is_spawn ? &next.descriptors : nullptr)) {
        // Its end of file comes as a report and says the rest.
        if (errno == EAGAIN) watch->once_writable([this] { send_orders(); });
        return;
      }
      queue.pop_front();
    }
  }

  void take_reports() {
    Report report;
    while (watch) {
      switch (receive_report(keeper->connection(), &report)) {
        case Received::Nothing:
          return;
        case Received::PeerGone:
          return lose_keeper("it died");
        case Received::Message:
          pass_on(report);
          break;
      }
    }
  }

  void pass_on(const Report& report) {
    switch (report.kind) {
      case ReportKind::Ready:
        return;
      case ReportKind::Spawned:
        return callbacks.on_spawned(report.worker, report.pid);
      case ReportKind::SpawnFailed:
        return callbacks.on_spawn_failed(report.worker,
                                         std::generic_category().message(report.error));
      case ReportKind::Exited:
        return callbacks.on_exited(report.worker, status_of(report));
    }
  }

  ExitStatus status_of(const Report& report) {
    if (report.left_behind > 0) {
      log::error("processes_left_behind",
                 {{"pid", report.pid}, {"count", report.left_behind}, {"limit_seconds", 5}});
    }
    const bool is_killed = report.by_signal != 0 && report.code == SIGKILL;
    return {.by_signal = report.by_signal != 0,
            .code = report.code,
            .core_dumped = report.core_dumped != 0,
            .out_of_memory = is_killed && memory_kills.has_risen()};
  }

  void lose_keeper(const char* why) {
    watch.reset();
    queue.clear();
    const bool is_all_gone = keeper->end_tree();
    log::error("keeper_lost", {{"reason", why}, {"all_processes_gone", is_all_gone}});
    try {
      keeper.emplace(Keeper::start());
      watch_keeper();
    } catch (const std::system_error& error) {
      log::error("keeper_not_started", {{"reason", error.what()}});
    }
    boost::asio::post(loop, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->callbacks.on_keeper_lost();
    });
  }

  void fail_spawn(WorkerSerial worker, std::string reason) {
    boost::asio::post(loop, [weak = weak_from_this(), worker, reason = std::move(reason)] {
      if (const auto self = weak.lock()) self->callbacks.on_spawn_failed(worker, reason);
    });
  }

  boost::asio::io_context& loop;
  std::optional<Keeper> keeper;
  ProcessCallbacks callbacks;
  std::unique_ptr<DescriptorWatch> watch;  // none: there is no keeper
  std::deque<QueuedOrder> queue;
  MemoryKills memory_kills;
};

Processes::Processes(boost::asio::io_context& loop, Keeper keeper, ProcessCallbacks callbacks)
    : impl_(std::make_shared<Impl>(loop, std::move(keeper), std::move(callbacks))) {
  impl_->watch_keeper();
}

Processes::~Processes() = default;

void Processes::spawn(WorkerSerial worker, const SpawnPayload& payload,
                      SpawnDescriptors descriptors) {
  if (!impl_->watch) return impl_->fail_spawn(worker, "there is no process to hold workers");
  try {
    descriptors.payload = to_memory_file(payload);
  } catch (const std::system_error& error) {
    return impl_->fail_spawn(worker, error.what());
  }
  impl_->order({{.kind = OrderKind::Spawn, .worker = worker}, std::move(descriptors)});
}

void Processes::signal(WorkerSerial worker, int signal_number) {
  impl_->order({{.kind = OrderKind::Signal, .worker = worker, .signal_number = signal_number}, {}});
}

void Processes::end() {
  impl_->watch.reset();
  if (impl_->keeper && !impl_->keeper->end_tree()) {
    log::error("processes_left_behind", {{"when", "end"}});
  }
}

}  // namespace lrun::agent
