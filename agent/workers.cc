#include "agent/workers.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "agent/channel_socket.h"
#include "agent/error_record.h"
#include "agent/process.h"
#include "agent/worker_environment.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

// The end of what a worker printed is what its failure's sentence has room for.
constexpr std::size_t kLastWordsBytesMax = 512;

std::string end_of(std::string_view text) {
  if (text.size() <= kLastWordsBytesMax) return std::string(text);
  text.remove_prefix(text.size() - kLastWordsBytesMax);
  const std::size_t newline = text.find('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return std::string(text);
}

}  // namespace

struct Workers::Impl : std::enable_shared_from_this<Workers::Impl> {
  struct Worker {
    WorkerSerial serial = 0;
    WorkerEnv environment;
    int pid = 0;
    std::unique_ptr<ChannelSocket> channel;
    bool was_signalled = false;
  };

  Impl(boost::asio::io_context& the_loop, WorkerOptions the_options, Output& the_output,
       WorkerCallbacks the_callbacks)
      : loop(the_loop),
        options(std::move(the_options)),
        output(the_output),
        callbacks(std::move(the_callbacks)) {}

  void hold(Keeper keeper) {
    processes = std::make_unique<Processes>(
        loop, std::move(keeper),
        ProcessCallbacks{
            .on_spawned = [this](WorkerSerial serial, int pid) { spawned(serial, pid); },
            .on_spawn_failed = [this](
                                   WorkerSerial serial,
                                   std::string reason) { spawn_failed(serial, std::move(reason)); },
            .on_exited = [this](WorkerSerial serial, ExitStatus status) { exited(serial, status); },
            .on_keeper_lost = [this] { keeper_lost(); }});
  }

  void emit(Event event) { callbacks.on_event(std::move(event)); }

  // For what may happen inside a call of the agent.
  void emit_later(Event event) {
    boost::asio::post(loop, [weak = weak_from_this(), event = std::move(event)] {
      if (const auto self = weak.lock()) self->emit(event);
    });
  }

  std::optional<LocalRank> local_rank_of(WorkerSerial serial) const {
    for (const auto& [local_rank, worker] : workers) {
      if (worker.serial == serial) return local_rank;
    }
    return std::nullopt;
  }

  void spawn(const SpawnWorker& order) {
    WorkerEnv environment = order.environment;
    environment.channel_fd = kChannelDescriptor;
    if (workers.empty() && environment.generation != group) {
      group = environment.generation;
      output.begin_group(environment.restart_count);
    }
    Worker& worker = workers[order.local_rank];
    worker = Worker();
    worker.serial = ++last_serial;
    worker.environment = environment;
    try {
      WorkerStreams streams = output.open(environment);
      ChannelPair pair = make_channel();
      worker.channel = open_channel(order.local_rank, std::move(pair.agents_end));
      processes->spawn(worker.serial, payload_for(environment),
                       {.payload = Fd(),
                        .stdout_end = std::move(streams.stdout_end),
                        .stderr_end = std::move(streams.stderr_end),
                        .channel = std::move(pair.workers_end)});
    } catch (const std::system_error& error) {
      workers.erase(order.local_rank);
      emit_later(SpawnFailed{order.local_rank, error.what()});
    }
  }

  SpawnPayload payload_for(const WorkerEnv& environment) const {
    SpawnPayload payload{.command = worker_command(options.command, environment.local_rank),
                         .environment = {},
                         .marks = {}};
    for (const auto& [name, value] :
         worker_environment(options.base_environment, environment, options.signals_to_handle)) {
      payload.environment.push_back(name + "=" + value);
      // Together these tell one worker of one generation from all others below the keeper.
      if (name == "LRUN_GENERATION" || name == "LOCAL_RANK") {
        payload.marks.push_back(payload.environment.back());
      }
    }
    return payload;
  }

  std::unique_ptr<ChannelSocket> open_channel(LocalRank local_rank, Fd agents_end) {
    return std::make_unique<ChannelSocket>(
        loop, std::move(agents_end),
        ChannelSocket::Callbacks{.on_message =
                                     [this, local_rank](channel::FromWorker message) {
                                       emit(WorkerSaid{local_rank, std::move(message)});
                                     },
                                 .on_garbled =
                                     [this, local_rank](std::string reason) {
                                       emit_later(WorkerGarbled{local_rank, std::move(reason)});
                                     }});
  }

  void spawned(WorkerSerial serial, int pid) {
    const std::optional<LocalRank> local_rank = local_rank_of(serial);
    if (!local_rank) return;
    workers[*local_rank].pid = pid;
    emit(WorkerSpawned{*local_rank, pid});
    const auto worker = workers.find(*local_rank);
    if (worker != workers.end()) worker->second.channel->start();
  }

  void spawn_failed(WorkerSerial serial, std::string reason) {
    const std::optional<LocalRank> local_rank = local_rank_of(serial);
    if (!local_rank) return;
    workers.erase(*local_rank);
    const std::string program = options.command.empty() ? "" : options.command.front();
    emit(SpawnFailed{*local_rank, "'" + program + "' could not be executed: " + reason});
  }

  void exited(WorkerSerial serial, ExitStatus status) {
    const std::optional<LocalRank> local_rank = local_rank_of(serial);
    if (!local_rank) return;
    const auto ended_at = std::chrono::system_clock::now();
    workers[*local_rank].channel->drain();
    output.drain(*local_rank, [weak = weak_from_this(), serial, status,
                               ended_at](const std::string& last_lines) {
      if (const auto self = weak.lock()) self->report_end(serial, status, ended_at, last_lines);
    });
  }

  void report_end(WorkerSerial serial, const ExitStatus& status,
                  std::chrono::system_clock::time_point ended_at, const std::string& last_lines) {
    const std::optional<LocalRank> local_rank = local_rank_of(serial);
    if (!local_rank) return;
    const Worker worker = std::move(workers[*local_rank]);
    workers.erase(*local_rank);
    const WorkerEnv& environment = worker.environment;
    FailedWorker details{.global_rank = environment.global_rank,
                         .local_rank = *local_rank,
                         .pid = worker.pid,
                         .status = status,
                         .ended_at = ended_at,
                         .last_lines = last_lines};
    const auto record = read_error_record(environment.error_file);
    if (record && record->complaint.empty()) {
      details.error_file = environment.error_file;
      details.call_stack = record->call_stack.empty() ? record->message : record->call_stack;
      details.ended_at = record->written_at.value_or(ended_at);
    } else if (record) {
      log::warn("error_record_ignored", {{"local_rank", local_rank->value},
                                         {"reason", record->complaint},
                                         {"file", environment.error_file}});
    }
    const bool has_words = record && !record->message.empty();
    callbacks.on_end({.event = {.local_rank = *local_rank,
                                .status = status,
                                .last_words = has_words ? record->message : end_of(last_lines)},
                      .details = std::move(details),
                      .was_signalled = worker.was_signalled});
  }

  void keeper_lost() {
    workers.clear();
    emit(KeeperLost{});
  }

  boost::asio::io_context& loop;
  WorkerOptions options;
  Output& output;
  WorkerCallbacks callbacks;
  std::unique_ptr<Processes> processes;
  std::map<LocalRank, Worker> workers;
  Generation group;  // of the last begin_group
  WorkerSerial last_serial = 0;
};

Workers::Workers(boost::asio::io_context& loop, WorkerOptions options, Keeper keeper,
                 Output& output, WorkerCallbacks callbacks)
    : impl_(std::make_shared<Impl>(loop, std::move(options), output, std::move(callbacks))) {
  impl_->hold(std::move(keeper));
}

Workers::~Workers() = default;

void Workers::spawn(const SpawnWorker& order) { impl_->spawn(order); }

void Workers::signal(const SignalWorker& order) {
  const auto found = impl_->workers.find(order.local_rank);
  if (found == impl_->workers.end()) return;
  found->second.was_signalled = true;
  impl_->processes->signal(found->second.serial, order.signal_number);
}

void Workers::tell(const TellWorker& order) {
  const auto found = impl_->workers.find(order.local_rank);
  if (found != impl_->workers.end()) found->second.channel->send(order.message);
}

void Workers::end() {
  impl_->processes->end();
  impl_->workers.clear();
}

}  // namespace lrun::agent
