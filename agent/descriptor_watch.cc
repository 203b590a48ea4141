#include "agent/descriptor_watch.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <utility>

namespace lrun::agent {

using boost::asio::posix::stream_descriptor;

struct DescriptorWatch::State : std::enable_shared_from_this<DescriptorWatch::State> {
  State(boost::asio::io_context& loop, Fd owned) : descriptor(loop, owned.release()) {}

  void await_readable() {
    descriptor.async_wait(stream_descriptor::wait_read,
                          [weak = weak_from_this()](const boost::system::error_code& error) {
                            const auto state = weak.lock();
                            if (!state || error || !state->is_watched) return;
                            state->readable();
                            if (state->is_watched) state->await_readable();
                          });
  }

  void await_writable() {
    descriptor.async_wait(stream_descriptor::wait_write,
                          [weak = weak_from_this()](const boost::system::error_code& error) {
                            const auto state = weak.lock();
                            if (!state || error || !state->is_watched) return;
                            std::exchange(state->writable, nullptr)();
                          });
  }

  stream_descriptor descriptor;
  std::function<void()> readable;
  std::function<void()> writable;
  bool is_watched = true;  // false once the watch is destroyed
};

DescriptorWatch::DescriptorWatch(boost::asio::io_context& loop, Fd descriptor)
    : state_(std::make_shared<State>(loop, std::move(descriptor))) {}

DescriptorWatch::~DescriptorWatch() {
  state_->is_watched = false;
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

int DescriptorWatch::get() const { return state_->descriptor.native_handle(); }

void DescriptorWatch::on_readable(std::function<void()> callback) {
  const bool is_first = !state_->readable;
  state_->readable = std::move(callback);
  if (is_first) state_->await_readable();
}

void DescriptorWatch::once_writable(std::function<void()> callback) {
  const bool is_pending = static_cast<bool>(state_->writable);
  state_->writable = std::move(callback);
  if (!is_pending) state_->await_writable();
}

}  // namespace lrun::agent
