#include "trainer/loop/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lrun::loop {
namespace {

constexpr Duration kTerminalPeriod = std::chrono::milliseconds(100);
constexpr Duration kPlainPeriod = std::chrono::seconds(10);
constexpr int kDefaultColumns = 80;

int terminal_columns() {
  struct winsize size = {};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kDefaultColumns;
}

bool is_smart_terminal() {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(STDOUT_FILENO) != 0 && !is_dumb;
}

// https://no-color.org: any value but an empty one.
bool colour_is_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return no_colour == nullptr || *no_colour == '\0';
}

}  // namespace

Display::Display(Options options)
    : options_(options),
      is_terminal_(is_smart_terminal()),
      has_colour_(is_terminal_ && colour_is_wanted()) {}

Display::~Display() { clear_line(); }

void Display::progress(Instant now, const ProgressState& state) {
  if (options_.is_silent || !options_.has_progress || now < next_) return;
  next_ = now + (is_terminal_ ? kTerminalPeriod : kPlainPeriod);
  if (!is_terminal_) {
    message(plain_line(state));
    return;
  }
  // One column is left free: a full line would wrap on some terminals.
  const std::string line = "\r\033[K" + bar_line(state, terminal_columns() - 1, has_colour_);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  line_is_open_ = true;
}

void Display::message(const std::string& line) {
  if (options_.is_silent) return;
  clear_line();
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void Display::warning(const std::string& line) {
  if (options_.is_silent) return;
  clear_line();
  std::fputs(("warning: " + line + "\n").c_str(), stderr);
}

void Display::clear_line() {
  if (!line_is_open_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
  line_is_open_ = false;
}

}  // namespace lrun::loop
