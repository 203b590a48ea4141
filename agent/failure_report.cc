#include "agent/failure_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "agent/root_cause.h"

namespace lrun::agent {
namespace {

constexpr std::size_t kWidthMax = 60;
constexpr const char* kHowToRecord =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

// Text from a worker: lines stay, other control characters cannot drive the terminal.
std::string printable(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    safe += (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f ? '?' : c;
  }
  return safe;
}

std::string local_time(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d_%H:%M:%S", &parts)};
}

// A line "  label     : value"; further lines of the value are indented.
std::string field(std::string label, std::string_view value) {
  label.resize(10, ' ');
  std::string text = "  " + label + ": ";
  for (const char c : printable(value)) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text + "\n";
}

std::string what_happened(const FailedWorker& worker) {
  if (!worker.call_stack.empty()) return worker.call_stack;
  if (!worker.status.by_signal) return kHowToRecord;
  return "Signal " + std::to_string(worker.status.code) + " (" + signal_name(worker.status.code) +
         ") received by PID " + std::to_string(worker.pid) +
         (worker.status.out_of_memory ? ", out of memory" : "");
}

std::string block(const FailedWorker& worker, std::size_t index, const FailureReport& report) {
  const int code = worker.status.by_signal ? -worker.status.code : worker.status.code;
  return "[" + std::to_string(index) + "]:\n" + field("time", local_time(worker.ended_at)) +
         field("host", report.host) +
         field("rank", std::to_string(worker.global_rank.value) +
                           " (local_rank: " + std::to_string(worker.local_rank.value) + ")") +
         field("exitcode", std::to_string(code) + " (pid: " + std::to_string(worker.pid) + ")") +
         field("error_file", worker.error_file.empty() ? "<N/A>" : worker.error_file) +
         field("traceback", what_happened(worker));
}

// What only lrun tells: the end of the worker's stderr and where the rest is.
std::string more_about(const FailedWorker& root, const FailureReport& report) {
  std::string text;
  if (root.call_stack.empty() && !root.last_lines.empty())
    text += field("last lines", root.last_lines);
  if (!report.log_folder.empty()) text += field("logs", report.log_folder);
  return text;
}

std::size_t width_of(std::string_view text) {
  std::size_t widest = 0;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    widest = std::max(widest, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
  return std::min(widest, kWidthMax);
}

std::string torchrun_block(const FailureReport& report) {
  std::vector<FailedWorker> workers = report.workers;
  std::stable_sort(workers.begin(), workers.end(),
                   [](const auto& a, const auto& b) { return a.global_rank < b.global_rank; });
  const auto root =
      std::min_element(workers.begin(), workers.end(),
                       [](const auto& a, const auto& b) { return a.ended_at < b.ended_at; });
  std::string others;
  std::string first;
  for (std::size_t index = 0; index < workers.size(); ++index) {
    std::string text = block(workers[index], index, report);
    if (&workers[index] == &*root) {
      first = std::move(text) + more_about(*root, report);
    } else {
      others += text;
    }
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  const std::string title = printable(report.program) + " FAILED\n";
  const std::string failures = "Failures:\n" + others;
  const std::string cause = "Root Cause (first observed failure):\n" + first;
  const std::size_t width = width_of(title + failures + cause);
  const std::string section = std::string(width, '-') + "\n";
  const std::string border = std::string(width, '=') + "\n";
  return border + title + section + failures + section + cause + border;
}

}  // namespace

std::string to_text(const FailureReport& report) {
  std::string text;
  if (report.first_cause) {
    text = "The job failed: " + one_line(report.first_cause->sentence, kSentenceBytesMax) + "\n";
  }
  return report.workers.empty() ? text : text + torchrun_block(report);
}

}  // namespace lrun::agent
