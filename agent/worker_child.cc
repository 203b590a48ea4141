#include "agent/worker_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lrun::agent {
namespace {

constexpr int kNotExecutedCode = 127;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Puts `from` at `to`, whatever numbers the two have.
bool place(const Fd& from, int to) { return !from.is_open() || ::dup2(from.get(), to) == to; }

// Out of the way of every number that is about to be taken.
Fd moved_up(const Fd& fd) {
  return fd.is_open() ? Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kChannelDescriptor + 1)) : Fd();
}

bool take_descriptors(const SpawnDescriptors& descriptors) {
  const Fd stdout_end = moved_up(descriptors.stdout_end);
  const Fd stderr_end = moved_up(descriptors.stderr_end);
  const Fd channel = moved_up(descriptors.channel);
  // Everything else closes with exec, the result pipe included.
  return place(stdout_end, STDOUT_FILENO) && place(stderr_end, STDERR_FILENO) &&
         ::close_range(STDERR_FILENO + 1, std::numeric_limits<int>::max(), CLOSE_RANGE_CLOEXEC) ==
             0 &&
         place(channel, kChannelDescriptor);
}

[[noreturn]] void become_worker(const SpawnPayload& payload, const SpawnDescriptors& descriptors,
                                pid_t keeper, int result) {
  const std::vector<char*> arguments = pointers_to(payload.command);
  const std::vector<char*> environment = pointers_to(payload.environment);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(kNotExecutedCode);  // died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (take_descriptors(descriptors)) {
    ::execvpe(arguments[0], arguments.data(), environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(result, &error, sizeof(error));
  ::_exit(kNotExecutedCode);
}

}  // namespace

StartedChild start_child(const SpawnPayload& payload, const SpawnDescriptors& descriptors) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  Fd read_end(ends[0]);
  // Above the channel's number, so that the worker's own descriptors never take its place.
  Fd write_end(::fcntl(ends[1], F_DUPFD_CLOEXEC, kChannelDescriptor + 1));
  ::close(ends[1]);
  if (!write_end.is_open()) return {};
  const pid_t keeper = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become_worker(payload, descriptors, keeper, write_end.get());
  if (pid > 0) ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return {.pid = pid, .exec_result = std::move(read_end)};
}

}  // namespace lrun::agent
