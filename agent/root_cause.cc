#include "agent/root_cause.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace lrun::agent {
namespace {

// Room for what a worker said within a sentence of kSentenceBytesMax.
constexpr std::size_t kLastWordsBytesMax = 640;

constexpr std::array<std::pair<int, std::string_view>, 19> kSignalNames{{
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGSTOP, "SIGSTOP"},
    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
}};

// "worker 3 (node a, local rank 1, pid 4711)"
std::string describe(const Culprit& culprit) {
  std::string text = "worker";
  if (culprit.global_rank) text.append(" ").append(std::to_string(culprit.global_rank->value));
  text.append(" (node ").append(culprit.node.value);
  if (culprit.local_rank) {
    text.append(", local rank ").append(std::to_string(culprit.local_rank->value));
  }
  if (culprit.pid > 0) text.append(", pid ").append(std::to_string(culprit.pid));
  return text.append(")");
}

FirstCause make(FailureKind kind, const Culprit& culprit, int code, const std::string& sentence) {
  return FirstCause{.kind = kind,
                    .node = culprit.node,
                    .global_rank = culprit.global_rank,
                    .local_rank = culprit.local_rank,
                    .pid = culprit.pid,
                    .code = code,
                    .sentence = one_line(sentence, kSentenceBytesMax)};
}

std::string with_last_words(std::string sentence, std::string_view last_words) {
  const std::string words = one_line(last_words, kLastWordsBytesMax);
  return words.empty() ? sentence : sentence.append(": ").append(words);
}

std::string seconds_of(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms) + " ms";
}

bool is_blank(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value <= 0x20 || value == 0x7f;
}

// Where a text cut at `bytes` must end so that no UTF-8 sequence is torn.
std::size_t whole_characters(std::string_view text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80U) --bytes;
  return bytes;
}

}  // namespace

FirstCause cause_of_exit(const Culprit& culprit, const ExitStatus& status,
                         std::string_view last_words) {
  FailureKind kind = status.by_signal ? FailureKind::Signal : FailureKind::ExitCode;
  std::string sentence = describe(culprit);
  if (status.by_signal) {
    sentence += " was ended by " + signal_name(status.code);
  } else {
    sentence += " ended with exit code " + std::to_string(status.code);
  }
  if (status.core_dumped) sentence += ", core dumped";
  if (status.out_of_memory) {
    kind = FailureKind::OutOfMemory;
    sentence += ", out of memory";
  }
  return make(kind, culprit, status.code, with_last_words(std::move(sentence), last_words));
}

FirstCause cause_of_report(const Culprit& culprit, const channel::Failed& failed) {
  std::string sentence = describe(culprit);
  if (failed.peer) {
    sentence += " lost worker " + std::to_string(failed.peer->value);
  } else {
    sentence += " reported a failure";
  }
  return make(FailureKind::Reported, culprit, 0,
              with_last_words(std::move(sentence), failed.reason));
}

FirstCause cause_of_stall(const Culprit& culprit, Duration timeout, std::int64_t step) {
  return make(FailureKind::Stalled, culprit, 0,
              describe(culprit) + " made no progress beyond step " + std::to_string(step) +
                  " within the stall time-out of " + seconds_of(timeout));
}

FirstCause cause_of_spawn_failure(const Culprit& culprit, std::string_view reason) {
  return make(FailureKind::SpawnFailed, culprit, 0,
              with_last_words(describe(culprit) + " could not be started", reason));
}

FirstCause cause_of_keeper_loss(const NodeId& node) {
  return make(
      FailureKind::Signal, Culprit{.node = node}, SIGKILL,
      "the process that holds the workers of node " + node.value + " died, and they with it");
}

FirstCause cause_of_lost_lease(const NodeId& node, Duration silence) {
  return make(FailureKind::LeaseLost, Culprit{.node = node}, 0,
              "node " + node.value + " heard nothing from the rendezvous for " +
                  seconds_of(silence) + " and stopped its workers");
}

std::string signal_name(int number) {
  const auto found = std::find_if(kSignalNames.begin(), kSignalNames.end(),
                                  [number](const auto& entry) { return entry.first == number; });
  if (found != kSignalNames.end()) return std::string(found->second);
  return "signal " + std::to_string(number);
}

std::string one_line(std::string_view text, std::size_t bytes_max) {
  static constexpr std::string_view kCut = "…";
  std::string line;
  line.reserve(std::min(text.size(), bytes_max));
  for (const char byte : text) {
    if (!is_blank(byte)) {
      line += byte;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    if (line.size() > bytes_max) break;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() <= bytes_max) return line;
  line.resize(whole_characters(line, bytes_max - kCut.size()));
  return line.append(kCut);
}

bool RootCause::add(const FirstCause& cause, bool is_victim) {
  std::optional<FirstCause>& place = is_victim ? victim_ : culprit_;
  const bool is_first = !place;
  if (is_first) place = cause;
  return is_first && !is_victim;
}

}  // namespace lrun::agent
