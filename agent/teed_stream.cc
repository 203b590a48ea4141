#include "agent/teed_stream.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/console.h"
#include "agent/descriptor_watch.h"
#include "base/log.h"

namespace lrun::agent {
namespace {

// One read of a pipe; then the loop looks at others.
constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

TeedStream::TeedStream(boost::asio::io_context& loop, Fd pipe, Fd file, std::string path,
                       Console& console, std::string prefix)
    : file_(std::move(file)),
      path_(std::move(path)),
      console_(console),
      prefixer_(std::move(prefix)),
      buffer_(kReadBytes),
      pipe_(std::make_unique<DescriptorWatch>(loop, std::move(pipe))) {
  pipe_->on_readable([this] {
    read_once();
    const auto callback = is_at_end() ? std::exchange(on_end_, nullptr) : nullptr;
    if (callback) callback();
  });
}

TeedStream::~TeedStream() = default;

bool TeedStream::read_all() {
  while (!is_at_end() && read_once()) {
  }
  return is_at_end();
}

void TeedStream::close() {
  if (is_at_end()) return;
  pipe_.reset();
  console_.write(prefixer_.finish());
}

bool TeedStream::read_once() {
  const ssize_t got = ::read(pipe_->get(), buffer_.data(), buffer_.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {
    close();
    return false;
  }
  const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
  save(bytes);
  tail_.feed(bytes);
  const std::string lines = prefixer_.feed(bytes);
  if (!lines.empty()) console_.write(lines);
  return true;
}

void TeedStream::save(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return complain();
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Once: a full disk would repeat it for every line.
void TeedStream::complain() {
  const std::string reason = std::generic_category().message(errno);
  if (std::exchange(has_complained_, true)) return;
  log::error("log_write_failed", {{"path", path_}, {"reason", reason}});
}

}  // namespace lrun::agent
