#include "rendezvous/convert_nouns.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>

#include "proto/rendezvous.pb.h"
#include "rendezvous/wire_limits.h"

namespace lrun::rendezvous {
namespace {

constexpr int kIntMax = std::numeric_limits<int>::max();
// Longest duration that anybody may name: keeps additions to points in time from overflowing.
constexpr std::int64_t kSecondsMax = std::int64_t{10} * 365 * 24 * 3600;
constexpr int kPortMax = 65535;

// Length of the valid UTF-8 sequence that starts at `at`; 0 where there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t next = at + 1; next < at + length; ++next) {
    if ((byte(next) & 0xC0) != 0x80) return 0;
  }
  if (length < 3) return length;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  const unsigned char second = byte(at + 1);
  const bool is_bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return is_bad ? 0 : length;
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

std::string clean_text(const std::string& text, std::size_t bytes_max) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (clean.size() + std::max<std::size_t>(length, 1) > bytes_max) break;
    if (length == 0) {
      clean += '?';
      ++at;
    } else {
      clean.append(text, at, length);
      at += length;
    }
  }
  return clean;
}

// --- limits
// ----------------------------------------------------------------------------------------

void Limits::require(bool holds, std::string_view field, std::string_view accepted) {
  if (holds || refusal_) return;
  refusal_ = Refusal{.reason = RefuseReason::BadRequest,
                     .sentence = "field '" + std::string(field) + "' of the message is not " +
                                 std::string(accepted)};
}

std::string Limits::text(std::string_view field, const std::string& value, std::size_t bytes_max) {
  const bool fits = value.size() <= bytes_max;
  require(fits, field,
          "within its limit of " + std::to_string(bytes_max) + " bytes (has " +
              std::to_string(value.size()) + ")");
  return fits ? value : std::string();
}

std::string Limits::required_text(std::string_view field, const std::string& value,
                                  std::size_t bytes_max) {
  require(!value.empty(), field, "set");
  return text(field, value, bytes_max);
}

int Limits::number(std::string_view field, std::int64_t value, int min, int max) {
  const bool fits = value >= min && value <= max;
  require(fits, field,
          "between " + std::to_string(min) + " and " + std::to_string(max) + " (is " +
              std::to_string(value) + ")");
  return fits ? static_cast<int>(value) : min;
}

// --- reading
// ---------------------------------------------------------------------------------------

Generation read(const v1::Generation& wire) {
  return {.term = wire.term(), .number = wire.number()};
}

Duration read(Limits& limits, std::string_view field, const google::protobuf::Duration& wire) {
  const bool fits = wire.seconds() >= 0 && wire.seconds() <= kSecondsMax && wire.nanos() >= 0 &&
                    wire.nanos() < 1'000'000'000;
  limits.require(fits, field, "a duration from 0 to ten years");
  if (!fits) return Duration{};
  return std::chrono::seconds(wire.seconds()) + std::chrono::nanoseconds(wire.nanos());
}

FirstCause read(Limits& limits, const v1::FirstCause& wire) {
  FirstCause cause;
  cause.kind = limits.enumerator("cause.kind", wire.kind(), FailureKind::Refused);
  cause.node.value = limits.text("cause.node", wire.node(), kNodeNameBytesMax);
  if (wire.has_global_rank()) {
    cause.global_rank =
        GlobalRank{limits.number("cause.global_rank", wire.global_rank(), 0, kIntMax)};
  }
  if (wire.has_local_rank()) {
    cause.local_rank =
        LocalRank{limits.number("cause.local_rank", wire.local_rank(), 0, kSlotsMax)};
  }
  cause.pid = limits.number("cause.pid", wire.pid(), 0, kIntMax);
  cause.code = wire.code();
  cause.sentence = limits.text("cause.sentence", wire.sentence(), kSentenceBytesMax);
  return cause;
}

NodeFacts read(Limits& limits, const v1::NodeFacts& wire) {
  NodeFacts facts;
  facts.node.value = limits.required_text("facts.node", wire.node(), kNodeNameBytesMax);
  facts.incarnation.value = wire.incarnation();
  facts.slots = limits.number("facts.slots", wire.slots(), 1, kSlotsMax);
  facts.role = limits.required_text("facts.role", wire.role(), kRoleBytesMax);
  facts.address = limits.text("facts.address", wire.address(), kAddressBytesMax);
  facts.master_port = limits.number("facts.master_port", wire.master_port(), 0, kPortMax);
  if (wire.has_fixed_rank()) {
    facts.fixed_rank =
        GroupRank{limits.number("facts.fixed_rank", wire.fixed_rank(), 0, kNodesMax - 1)};
  }
  limits.require(wire.labels_size() <= kLabelsMax, "facts.labels",
                 "a list of at most " + std::to_string(kLabelsMax));
  if (wire.labels_size() > kLabelsMax) return facts;
  for (const auto& [name, value] : wire.labels()) {
    facts.labels[limits.required_text("facts.labels (name)", name, kLabelBytesMax)] =
        limits.text("facts.labels (value)", value, kLabelBytesMax);
  }
  return facts;
}

Assignment read(Limits& limits, const v1::Assignment& wire) {
  constexpr int kWorldMax = kNodesMax * kSlotsMax;
  Assignment assignment;
  assignment.generation = read(wire.generation());
  limits.require(!is_none(assignment.generation), "assignment.generation", "set");
  assignment.group_world_size =
      limits.number("assignment.group_world_size", wire.group_world_size(), 1, kNodesMax);
  assignment.group_rank.value =
      limits.number("assignment.group_rank", wire.group_rank(), 0, assignment.group_world_size - 1);
  assignment.world_size = limits.number("assignment.world_size", wire.world_size(), 1, kWorldMax);
  assignment.slots = limits.number("assignment.slots", wire.slots(), 1,
                                   std::min(kSlotsMax, assignment.world_size));
  assignment.first_global_rank.value =
      limits.number("assignment.first_global_rank", wire.first_global_rank(), 0,
                    assignment.world_size - assignment.slots);
  assignment.role_world_size =
      limits.number("assignment.role_world_size", wire.role_world_size(), 1, assignment.world_size);
  assignment.first_role_rank = limits.number("assignment.first_role_rank", wire.first_role_rank(),
                                             0, assignment.role_world_size - 1);
  assignment.master_addr =
      limits.text("assignment.master_addr", wire.master_addr(), kAddressBytesMax);
  assignment.master_port = limits.number("assignment.master_port", wire.master_port(), 0, kPortMax);
  assignment.restarts_spent =
      limits.number("assignment.restarts_spent", wire.restarts_spent(), 0, kRestartsMax);
  assignment.reason =
      limits.enumerator("assignment.reason", wire.reason(), GenerationReason::Stalled);
  return assignment;
}

Directive read(Limits& limits, const v1::Directive& wire) {
  switch (wire.order_case()) {
    case v1::Directive::kContinue:
      return Continue{};
    case v1::Directive::kRejoin: {
      Rejoin rejoin;
      rejoin.reason =
          limits.enumerator("rejoin.reason", wire.rejoin().reason(), RejoinReason::Unknown);
      rejoin.ended = read(wire.rejoin().ended());
      return rejoin;
    }
    case v1::Directive::kDrainNode:
      return DrainNode{};
    case v1::Directive::kStopJob: {
      StopJob stop;
      stop.outcome =
          limits.enumerator("stop_job.outcome", wire.stop_job().outcome(), Outcome::NoProgress);
      if (wire.stop_job().has_cause()) stop.cause = read(limits, wire.stop_job().cause());
      return stop;
    }
    case v1::Directive::ORDER_NOT_SET:
      break;
  }
  limits.require(false, "directive", "an order of this version of lrun");
  return Continue{};
}

WorkerProgress read(Limits& limits, const v1::WorkerProgress& wire) {
  limits.require(wire.step() >= 0, "progress.step", "0 or more");
  limits.require(wire.samples() >= 0, "progress.samples", "0 or more");
  limits.require(std::isfinite(wire.samples_per_second()) && wire.samples_per_second() >= 0,
                 "progress.samples_per_second", "a finite number from 0 on");
  return {.step = wire.step(),
          .samples = wire.samples(),
          .samples_per_second = wire.samples_per_second()};
}

// --- writing
// ---------------------------------------------------------------------------------------

void write(const Generation& generation, v1::Generation& wire) {
  wire.set_term(generation.term);
  wire.set_number(generation.number);
}

void write(Duration duration, google::protobuf::Duration& wire) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const std::chrono::nanoseconds rest = duration - seconds;
  wire.set_seconds(seconds.count());
  wire.set_nanos(static_cast<std::int32_t>(rest.count()));
}

void write(const FirstCause& cause, v1::FirstCause& wire) {
  wire.set_kind(wire_enumerator<v1::FailureKind>(cause.kind));
  wire.set_node(cause.node.value);
  if (cause.global_rank) wire.set_global_rank(cause.global_rank->value);
  if (cause.local_rank) wire.set_local_rank(cause.local_rank->value);
  wire.set_pid(cause.pid);
  wire.set_code(cause.code);
  wire.set_sentence(clean_text(cause.sentence, kSentenceBytesMax));
}

void write(const NodeFacts& facts, v1::NodeFacts& wire) {
  wire.set_node(facts.node.value);
  wire.set_incarnation(facts.incarnation.value);
  wire.set_slots(facts.slots);
  wire.set_role(facts.role);
  wire.set_address(facts.address);
  wire.set_master_port(facts.master_port);
  if (facts.fixed_rank) wire.set_fixed_rank(facts.fixed_rank->value);
  for (const auto& [name, value] : facts.labels) (*wire.mutable_labels())[name] = value;
}

void write(const Assignment& assignment, v1::Assignment& wire) {
  write(assignment.generation, *wire.mutable_generation());
  wire.set_group_rank(assignment.group_rank.value);
  wire.set_group_world_size(assignment.group_world_size);
  wire.set_first_global_rank(assignment.first_global_rank.value);
  wire.set_slots(assignment.slots);
  wire.set_world_size(assignment.world_size);
  wire.set_first_role_rank(assignment.first_role_rank);
  wire.set_role_world_size(assignment.role_world_size);
  wire.set_master_addr(assignment.master_addr);
  wire.set_master_port(assignment.master_port);
  wire.set_restarts_spent(assignment.restarts_spent);
  wire.set_reason(wire_enumerator<v1::GenerationReason>(assignment.reason));
}

void write(const Directive& directive, v1::Directive& wire) {
  std::visit(Overloaded{
                 [&](const Continue&) { wire.mutable_continue_(); },
                 [&](const Rejoin& rejoin) {
                   v1::Directive::Rejoin& order = *wire.mutable_rejoin();
                   order.set_reason(wire_enumerator<v1::RejoinReason>(rejoin.reason));
                   write(rejoin.ended, *order.mutable_ended());
                 },
                 [&](const DrainNode&) { wire.mutable_drain_node(); },
                 [&](const StopJob& stop) {
                   v1::Directive::StopJob& order = *wire.mutable_stop_job();
                   order.set_outcome(wire_enumerator<v1::Outcome>(stop.outcome));
                   if (stop.cause) write(*stop.cause, *order.mutable_cause());
                 },
             },
             directive);
}

void write(const WorkerProgress& progress, v1::WorkerProgress& wire) {
  wire.set_step(progress.step);
  wire.set_samples(progress.samples);
  wire.set_samples_per_second(progress.samples_per_second);
}

}  // namespace lrun::rendezvous
