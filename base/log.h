// Structured log lines on stderr: one event a line, logfmt or JSON (docs/logs.md).
// Orchestrator only; the trainer prints plain lines of its own.
//
// Owns the line's format, escaping and the level. Threads: any; each line is one write().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace lrun::log {

enum class Level { Error, Warn, Info, Debug };
enum class Format { Logfmt, Json };

// One key and its value. Text from outside is quoted and its control characters are escaped, so it
// can neither forge a line nor drive a terminal.
struct Field {
  Field(std::string_view name, std::string_view text) : key(name), value(text) {}
  Field(std::string_view name, const std::string& text) : key(name), value(text) {}
  Field(std::string_view name, const char* text) : key(name), value(text) {}
  Field(std::string_view name, bool flag)
      : key(name), value(flag ? "true" : "false"), is_bare(true) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> Field(std::string_view name, Number number)
      : key(name), value(std::to_string(number)), is_bare(true) {}
  std::string key;
  std::string value;
  bool is_bare = false;  // a number or a truth value: no quotes in JSON
};

// Once, at start, before any thread. `component` and `node` appear in every line.
void configure(Level level, Format format, std::string component, std::string node);
void set_node(std::string node);
bool is_enabled(Level level);

// `event` is a constant snake_case word; fields keep their order.
void error(std::string_view event, std::initializer_list<Field> fields);
void warn(std::string_view event, std::initializer_list<Field> fields);
void info(std::string_view event, std::initializer_list<Field> fields);
void debug(std::string_view event, std::initializer_list<Field> fields);

// The line that would be written, without newline; for tests. `ts` is the text of the time stamp.
std::string format_line(Level level, Format format, std::string_view ts, std::string_view component,
                        std::string_view node, std::string_view event,
                        std::initializer_list<Field> fields);

}  // namespace lrun::log
