// Nouns of the wire, both ways, with every limit checked. Used by rendezvous/convert only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/events.h"

namespace google::protobuf {
class Duration;
}

namespace lrun::rendezvous {
namespace v1 {
class Assignment;
class Directive;
class FirstCause;
class Generation;
class NodeFacts;
class WorkerProgress;
}  // namespace v1

// Keeps the first broken limit of a message as a sentence. Each check returns a usable value, so
// that reading goes on in a straight line and is judged once, at the end.
class Limits {
 public:
  std::string text(std::string_view field, const std::string& value, std::size_t bytes_max);
  std::string required_text(std::string_view field, const std::string& value,
                            std::size_t bytes_max);
  int number(std::string_view field, std::int64_t value, int min, int max);
  void require(bool holds, std::string_view field, std::string_view accepted);
  // Wire enumerators are the C++ ones plus one; 0 is "unset".
  template <class Enum>
  Enum enumerator(std::string_view field, int value, Enum last) {
    const bool is_known = value >= 1 && value <= static_cast<int>(last) + 1;
    require(is_known, field, "an enumerator of this version of lrun");
    return is_known ? static_cast<Enum>(value - 1) : Enum{};
  }
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  std::optional<Refusal> refusal_;
};

template <class WireEnum, class Enum>
WireEnum wire_enumerator(Enum value) {
  return static_cast<WireEnum>(static_cast<int>(value) + 1);
}

// Valid UTF-8 of at most `bytes_max` bytes: what else a sentence holds would make the whole message
// unreadable for the other side.
std::string clean_text(const std::string& text, std::size_t bytes_max);

Generation read(const v1::Generation& wire);
Duration read(Limits& limits, std::string_view field, const google::protobuf::Duration& wire);
FirstCause read(Limits& limits, const v1::FirstCause& wire);
NodeFacts read(Limits& limits, const v1::NodeFacts& wire);
Assignment read(Limits& limits, const v1::Assignment& wire);
Directive read(Limits& limits, const v1::Directive& wire);
WorkerProgress read(Limits& limits, const v1::WorkerProgress& wire);

void write(const Generation& generation, v1::Generation& wire);
void write(Duration duration, google::protobuf::Duration& wire);
void write(const FirstCause& cause, v1::FirstCause& wire);
void write(const NodeFacts& facts, v1::NodeFacts& wire);
void write(const Assignment& assignment, v1::Assignment& wire);
void write(const Directive& directive, v1::Directive& wire);
void write(const WorkerProgress& progress, v1::WorkerProgress& wire);

}  // namespace lrun::rendezvous
