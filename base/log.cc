#include "base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <ctime>

namespace lrun::log {
namespace {

// A field beyond this is cut: one line stays one write() and fits a terminal's patience.
constexpr std::size_t kFieldBytesMax = 4096;

struct Settings {
  Level level = Level::Warn;
  Format format = Format::Logfmt;
  std::string component = "lrun";
  std::string node;
};

// Written by configure() and set_node() on the main thread before others log; read by all.
Settings& settings() {
  static Settings instance;
  return instance;
}

const char* name_of(Level level) {
  switch (level) {
    case Level::Error:
      return "error";
    case Level::Warn:
      return "warn";
    case Level::Info:
      return "info";
    case Level::Debug:
      return "debug";
  }
  return "error";
}

// JSON's escapes, which logfmt readers understand too. Bytes outside ASCII pass, except that DEL
// and the C1 controls (as UTF-8) could drive a terminal.
std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (std::size_t i = 0; i < text.size() && i < kFieldBytesMax; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || is_c1) {
      std::array<char, 8> code{};
      const unsigned value = is_c1 ? static_cast<unsigned char>(text[++i]) : byte;
      std::snprintf(code.data(), code.size(), "\\u%04x", value);
      out += code.data();
    } else {
      out += text[i];
    }
  }
  return out;
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '"' || byte == '\\' || byte == '=' || byte >= 0x7F) return true;
  }
  return false;
}

void append(std::string& line, Format format, std::string_view key, std::string_view value,
            bool is_bare) {
  if (format == Format::Json) {
    line += line.empty() ? "{\"" : ",\"";
    line += key;
    line += "\":";
    line += is_bare ? std::string(value) : '"' + escape(value) + '"';
    return;
  }
  if (!line.empty()) line += ' ';
  line += key;
  line += '=';
  line += is_bare || !needs_quotes(value) ? std::string(value) : '"' + escape(value) + '"';
}

std::string time_stamp() {
  timeval now{};
  gettimeofday(&now, nullptr);  // the one place where lrun reads the wall clock for people
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ",
                static_cast<int>(now.tv_usec / 1000));
  return text.data();
}

void write_line(Level level, std::string_view event, std::initializer_list<Field> fields) {
  if (!is_enabled(level)) return;
  const Settings& s = settings();
  std::string line = format_line(level, s.format, time_stamp(), s.component, s.node, event, fields);
  line += '\n';
  // A closed or full stderr must not stop a job: what cannot be written now is dropped.
  while (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace

void configure(Level level, Format format, std::string component, std::string node) {
  settings() = {level, format, std::move(component), std::move(node)};
}

void set_node(std::string node) { settings().node = std::move(node); }

bool is_enabled(Level level) { return level <= settings().level; }

std::string format_line(Level level, Format format, std::string_view ts, std::string_view component,
                        std::string_view node, std::string_view event,
                        std::initializer_list<Field> fields) {
  std::string line;
  append(line, format, "ts", ts, false);
  append(line, format, "level", name_of(level), false);
  append(line, format, "component", component, false);
  if (!node.empty()) append(line, format, "node", node, false);
  append(line, format, "event", event, false);
  for (const Field& field : fields) append(line, format, field.key, field.value, field.is_bare);
  if (format == Format::Json) line += '}';
  return line;
}

void error(std::string_view event, std::initializer_list<Field> fields) {
  write_line(Level::Error, event, fields);
}
void warn(std::string_view event, std::initializer_list<Field> fields) {
  write_line(Level::Warn, event, fields);
}
void info(std::string_view event, std::initializer_list<Field> fields) {
  write_line(Level::Info, event, fields);
}
void debug(std::string_view event, std::initializer_list<Field> fields) {
  write_line(Level::Debug, event, fields);
}

}  // namespace lrun::log
