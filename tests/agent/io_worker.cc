// The workers of the io tests: each mode is one kind of program that users bring.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

extern char** environ;

namespace {

// Nothing the tests start outlives this, whatever fails.
constexpr unsigned kLifeLimitSeconds = 120;

[[noreturn]] void wait_for_a_signal() {
  while (true) ::pause();
}

// A new process that only waits. `depth` 1: plain child; 2: daemonised, double fork and setsid.
void start_sleeper(bool has_own_session, bool is_daemon) {
  if (::fork() != 0) return;
  ::alarm(kLifeLimitSeconds);
  if (has_own_session) ::setsid();
  if (is_daemon && ::fork() != 0) ::_exit(0);
  ::alarm(kLifeLimitSeconds);
  wait_for_a_signal();
}

// Three kinds of descendants, then a file that says so.
int tree(const char* ready_file) {
  start_sleeper(false, false);
  start_sleeper(true, false);
  start_sleeper(true, true);
  std::ofstream(ready_file) << ::getpid() << '\n';
  wait_for_a_signal();
}

// Leaves a daemon and a plain child behind and ends well.
int leave_daemon() {
  start_sleeper(true, true);
  start_sleeper(false, false);
  return 0;
}

int numbered_lines(int count) {
  for (int line = 0; line < count; ++line) std::printf("line %d\n", line);
  std::fflush(stdout);
  std::abort();
}

// What this process was started with: ids, signals, open descriptors.
int describe_process(const char* file) {
  std::string descriptors;
  for (int number = 0; number < 1024; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) descriptors += " " + std::to_string(number);
  }
  std::ofstream told(file);
  told << ::getpid() << ' ' << ::getpgrp() << ' ' << ::getsid(0) << '\n';
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk") || line.starts_with("SigIgn")) told << line << '\n';
  }
  told << "descriptors" << descriptors << '\n';
  return 0;
}

int print_environment() {
  for (char** entry = environ; *entry; ++entry) std::printf("%s\n", *entry);
  return 0;
}

void on_term(int) {
  // Async-signal-safe: a handler that ends in order.
  [[maybe_unused]] const ssize_t put = ::write(STDOUT_FILENO, "got TERM\n", 9);
  ::_exit(7);
}

int catch_term() {
  ::signal(SIGTERM, on_term);
  std::printf("ready\n");
  std::fflush(stdout);
  wait_for_a_signal();
}

int ignore_term() {
  ::signal(SIGTERM, SIG_IGN);
  std::printf("ready\n");
  std::fflush(stdout);
  wait_for_a_signal();
}

// Sends text to the agent over its channel and prints what comes back: one line, or nothing when
// the agent closes the channel.
int speak(const char* text) {
  const char* number = std::getenv("LRUN_CHANNEL_FD");
  if (!number) return 3;
  const int channel = std::atoi(number);
  const std::string line = std::string(text) + "\n";
  if (::send(channel, line.data(), line.size(), MSG_NOSIGNAL) < 0) return 4;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(channel, piece, sizeof(piece))) > 0;) {
    if (::write(STDOUT_FILENO, piece, static_cast<std::size_t>(got)) != got) return 5;
    if (std::memchr(piece, '\n', static_cast<std::size_t>(got))) return 0;
  }
  std::printf("channel closed\n");
  return 0;
}

int torn_line() {
  for (const std::string_view part : {"half a li", "ne\n", "\xff\0\n", "a\rb\n", "no newline"}) {
    const std::string_view bytes = part[0] == '\xff' ? std::string_view("\xff\0\n", 3) : part;
    if (::write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0) return 5;
    ::usleep(30'000);
  }
  return 0;
}

int exit_by_rank(const char* codes) {
  // "0:3,1:0": local rank to exit code.
  const std::string wanted = std::string(std::getenv("LOCAL_RANK")) + ":";
  const char* at = std::strstr(codes, wanted.c_str());
  return at ? std::atoi(at + wanted.size()) : 0;
}

}  // namespace

int main(int count, char** words) {
  ::alarm(kLifeLimitSeconds);
  const std::string_view mode = count > 1 ? words[1] : "";
  const char* argument = count > 2 ? words[2] : "";
  if (mode == "tree") return tree(argument);
  if (mode == "leave-daemon") return leave_daemon();
  if (mode == "numbered-lines") return numbered_lines(std::atoi(argument));
  if (mode == "describe-process") return describe_process(argument);
  if (mode == "print-environment") return print_environment();
  if (mode == "catch-term") return catch_term();
  if (mode == "ignore-term") return ignore_term();
  if (mode == "speak") return speak(argument);
  if (mode == "torn-line") return torn_line();
  if (mode == "exit-by-rank") return exit_by_rank(argument);
  std::fprintf(stderr, "unknown mode\n");
  return 64;
}
