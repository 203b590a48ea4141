#include "agent/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "agent/console.h"
#include "agent/output_lines.h"
#include "agent/teed_stream.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

namespace fs = std::filesystem;

// The kernel's usual limit: a worker that prints in bursts rarely waits for us.
constexpr int kPipeBytes = 1024 * 1024;
// After a worker's last process is gone only a stranger can hold its pipes.
constexpr Duration kDrainLimit = std::chrono::seconds(1);
// A console that takes nothing for this long is stopped or dead.
constexpr Duration kConsoleFlushLimit = std::chrono::seconds(2);
constexpr Duration kFlushLookInterval = std::chrono::milliseconds(5);
// Earlier folders or records of one attempt; beyond it the last name is reused.
constexpr int kKeptMax = 10'000;

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Fd open_log(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.is_open()) throw_errno(path);
  return file;
}

// Moves `path` to the first free name that `numbered` makes; nothing happens when it is not there.
void keep_earlier(const std::string& path, const std::function<std::string(int)>& numbered) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  int number = 1;
  while (number < kKeptMax && fs::exists(numbered(number), error)) ++number;
  fs::rename(path, numbered(number), error);
  if (error) log::warn("log_not_kept", {{"path", path}, {"reason", error.message()}});
}

std::string tail_of_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kTailBytesMax + 1> bytes;
  const off_t size = file.is_open() ? ::lseek(file.get(), 0, SEEK_END) : 0;
  const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(bytes.size()));
  const ssize_t got = file.is_open() ? ::pread(file.get(), bytes.data(), bytes.size(), begin) : 0;
  return got > 0 ? last_lines({bytes.data(), static_cast<std::size_t>(got)}) : "";
}

}  // namespace

struct Output::Impl : std::enable_shared_from_this<Output::Impl> {
  struct Worker {
    std::unique_ptr<TeedStream> teed_stdout;
    std::unique_ptr<TeedStream> teed_stderr;
    std::string stderr_path;  // written by the worker itself
    std::function<void(std::string)> on_drained;
    std::unique_ptr<boost::asio::steady_timer> limit;
  };

  Impl(boost::asio::io_context& the_loop, OutputOptions the_options,
       const std::function<void(Stream, std::size_t)>& on_dropped)
      : loop(the_loop),
        options(std::move(the_options)),
        out(loop, options.console_stdout,
            [on_dropped](std::size_t bytes) { on_dropped(Stream::Stdout, bytes); }),
        err(loop, options.console_stderr,
            [on_dropped](std::size_t bytes) { on_dropped(Stream::Stderr, bytes); }) {}

  std::string attempt_folder(int attempt) const {
    return options.run_folder + "/attempt_" + std::to_string(attempt);
  }

  std::string prefix_for(const WorkerEnv& worker) const {
    return expand_prefix(options.line_prefix,
                         {{"role_name", worker.role_name},
                          {"rank", std::to_string(worker.global_rank.value)},
                          {"local_rank", std::to_string(worker.local_rank.value)},
                          {"host", options.host},
                          {"attempt", std::to_string(worker.restart_count)}});
  }

  // The worker's end of one of its streams.
  Fd open_stream(const WorkerEnv& worker, Stream stream, const std::string& path, Worker& into) {
    if (options.tee.has(worker.local_rank, stream)) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
      Fd ours(ends[0]);
      Fd theirs(ends[1]);
      ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
      ::fcntl(ours.get(), F_SETPIPE_SZ, kPipeBytes);
      const bool is_stdout = stream == Stream::Stdout;
      auto& teed = is_stdout ? into.teed_stdout : into.teed_stderr;
      teed = std::make_unique<TeedStream>(loop, std::move(ours), open_log(path), path,
                                          is_stdout ? out : err, prefix_for(worker));
      return theirs;
    }
    if (!options.redirects.has(worker.local_rank, stream)) return {};
    if (stream == Stream::Stderr) into.stderr_path = path;
    return open_log(path);
  }

  void drain(LocalRank local_rank, std::function<void(std::string)> callback) {
    Worker& worker = workers[local_rank];
    worker.on_drained = std::move(callback);
    if (is_drained(worker)) return drained(local_rank);
    const std::weak_ptr<Impl> weak = weak_from_this();
    for (TeedStream* teed : {worker.teed_stdout.get(), worker.teed_stderr.get()}) {
      if (!teed) continue;
      teed->on_end([weak, local_rank] {
        const auto self = weak.lock();
        if (self && self->is_drained(self->workers[local_rank])) self->drained(local_rank);
      });
    }
    worker.limit = std::make_unique<boost::asio::steady_timer>(loop, kDrainLimit);
    worker.limit->async_wait([weak, local_rank](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!self || error) return;
      Worker& late = self->workers[local_rank];
      if (!self->is_drained(late)) {
        for (TeedStream* teed : {late.teed_stdout.get(), late.teed_stderr.get()}) {
          if (teed) teed->close();
        }
      }
      self->drained(local_rank);
    });
  }

  static bool is_drained(const Worker& worker) {
    const bool is_stdout_over = !worker.teed_stdout || worker.teed_stdout->read_all();
    const bool is_stderr_over = !worker.teed_stderr || worker.teed_stderr->read_all();
    return is_stdout_over && is_stderr_over;
  }

  // Posted: the streams may be the ones that call.
  void drained(LocalRank local_rank) {
    Worker& worker = workers[local_rank];
    if (!worker.on_drained) return;
    worker.limit.reset();
    boost::asio::post(loop, [weak = weak_from_this(), local_rank,
                             callback = std::exchange(worker.on_drained, nullptr)] {
      const auto self = weak.lock();
      if (!self) return;
      Worker over = std::move(self->workers[local_rank]);
      self->workers.erase(local_rank);
      if (over.teed_stderr) return callback(over.teed_stderr->last_lines());
      callback(over.stderr_path.empty() ? "" : tail_of_file(over.stderr_path));
    });
  }

  void flush(std::function<void()> callback, std::size_t before, Instant deadline) {
    const std::size_t pending = out.pending() + err.pending();
    const Instant now = std::chrono::steady_clock::now();
    if (pending < before) deadline = now + kConsoleFlushLimit;
    if (pending == 0 || now >= deadline) {
      boost::asio::post(loop, std::move(callback));
      return;
    }
    flush_timer.expires_after(kFlushLookInterval);
    flush_timer.async_wait([weak = weak_from_this(), callback = std::move(callback), pending,
                            deadline](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->flush(callback, pending, deadline);
    });
  }

  boost::asio::io_context& loop;
  OutputOptions options;
  Console out;
  Console err;
  std::map<LocalRank, Worker> workers;
  boost::asio::steady_timer flush_timer{loop};
};

Output::Output(boost::asio::io_context& loop, OutputOptions options,
               std::function<void(Stream, std::size_t)> on_dropped)
    : impl_(std::make_shared<Impl>(loop, std::move(options), on_dropped)) {}
Output::~Output() = default;

void Output::begin_group(int attempt) {
  if (impl_->options.run_folder.empty()) return;
  const std::string folder = impl_->attempt_folder(attempt);
  keep_earlier(folder, [&](int number) { return folder + "." + std::to_string(number); });
}

WorkerStreams Output::open(const WorkerEnv& worker) {
  if (impl_->options.run_folder.empty()) return {};
  const std::string folder =
      impl_->attempt_folder(worker.restart_count) + "/" + std::to_string(worker.local_rank.value);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw std::system_error(error, folder);
  keep_earlier(folder + "/error.json",
               [&](int number) { return folder + "/error." + std::to_string(number) + ".json"; });
  Impl::Worker opened;
  WorkerStreams streams;
  streams.stdout_end = impl_->open_stream(worker, Stream::Stdout, folder + "/stdout.log", opened);
  streams.stderr_end = impl_->open_stream(worker, Stream::Stderr, folder + "/stderr.log", opened);
  impl_->workers[worker.local_rank] = std::move(opened);
  return streams;
}

void Output::drain(LocalRank local_rank, std::function<void(std::string)> on_drained) {
  impl_->drain(local_rank, std::move(on_drained));
}

void Output::flush(std::function<void()> on_flushed) {
  impl_->flush(std::move(on_flushed), 0, std::chrono::steady_clock::now() + kConsoleFlushLimit);
}

}  // namespace lrun::agent
