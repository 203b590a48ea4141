#include "proto/channel.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "proto/flat_json.h"

namespace lrun::channel {
namespace {

using flat_json::FieldReader;
// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

constexpr int kPortMax = 65535;
constexpr int kIntMax = std::numeric_limits<int>::max();

// At most `bytes_max` bytes, never cut inside a character.
std::string_view cut(std::string_view text, std::size_t bytes_max = kTextBytesMax) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string name_of(Activity activity) {
  switch (activity) {
    case Activity::Computing:
      return "computing";
    case Activity::Waiting:
      return "waiting";
    case Activity::Saving:
      return "saving";
  }
  return "";
}

// --- writing -----------------------------------------------------------------------------------

struct Writer {
  Json operator()(const Hello& m) const {
    return {{"type", "hello"}, {"version", m.version}, {"live", m.live}};
  }
  Json operator()(const Progress& m) const {
    Json line{{"type", "progress"},
              {"step", m.step},
              {"samples", m.samples},
              {"activity", name_of(m.activity)}};
    if (m.peer) line["peer"] = m.peer->value;
    // JSON has no word for infinity or "not a number".
    line["samples_per_second"] = std::isfinite(m.samples_per_second) ? m.samples_per_second : 0.0;
    return line;
  }
  Json operator()(const SnapshotTaken& m) const { return {{"type", "snapshot"}, {"step", m.step}}; }
  Json operator()(const PublishValue& m) const {
    return {{"type", "publish"},
            {"key", cut(m.key, kKeyBytesMax)},
            {"value", cut(m.value, kValueBytesMax)}};
  }
  Json operator()(const LookupValue& m) const {
    return {{"type", "lookup"}, {"key", cut(m.key, kKeyBytesMax)}};
  }
  Json operator()(const Failed& m) const {
    Json line{{"type", "failed"}, {"reason", cut(m.reason)}};
    if (m.peer) line["peer"] = m.peer->value;
    return line;
  }
  Json operator()(const CheckpointSaved& m) const {
    return {{"type", "checkpoint"}, {"step", m.step}, {"path", cut(m.path)}};
  }
  Json operator()(const Aborted& m) const {
    return {{"type", "aborted"}, {"generation", to_string(m.generation)}};
  }
  Json operator()(const Ready& m) const {
    return {{"type", "ready"}, {"generation", to_string(m.generation)}};
  }
  Json operator()(const NewAssignment& m) const {
    return {{"type", "assignment"},
            {"generation", to_string(m.generation)},
            {"global_rank", m.global_rank.value},
            {"world_size", m.world_size},
            {"group_rank", m.group_rank.value},
            {"group_world_size", m.group_world_size},
            {"master_addr", cut(m.master_addr)},
            {"master_port", m.master_port},
            {"restart_count", m.restart_count}};
  }
  Json operator()(const Abort& m) const {
    return {{"type", "abort"}, {"generation", to_string(m.generation)}, {"reason", cut(m.reason)}};
  }
  Json operator()(const Value& m) const {
    return {{"type", "value"},
            {"key", cut(m.key, kKeyBytesMax)},
            {"value", cut(m.value, kValueBytesMax)}};
  }
  Json operator()(const Drain&) const { return {{"type", "drain"}}; }
  Json operator()(const Stop&) const { return {{"type", "stop"}}; }
};

std::string written(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// --- reading -----------------------------------------------------------------------------------

std::optional<GlobalRank> optional_rank(FieldReader& fields, std::string_view key) {
  if (!fields.has(key)) return std::nullopt;
  return GlobalRank{static_cast<int>(fields.integer(key, 0, kIntMax))};
}

int count(FieldReader& fields, std::string_view key, int least, int most = kIntMax) {
  return static_cast<int>(fields.integer(key, least, most));
}

std::string blackboard_key(FieldReader& fields) {
  std::string key = fields.text("key", kKeyBytesMax);
  if (key.empty()) fields.refuse("key", "text of at least one byte");
  return key;
}

Activity activity(FieldReader& fields) {
  if (!fields.has("activity")) return Activity::Computing;
  const std::string word = fields.text("activity", kTextBytesMax);
  for (const Activity known : {Activity::Computing, Activity::Waiting, Activity::Saving}) {
    if (word == name_of(known)) return known;
  }
  fields.refuse("activity", "computing, waiting or saving");
  return Activity::Computing;
}

Progress progress(FieldReader& fields) {
  Progress message;
  message.step = fields.integer("step", 0, std::numeric_limits<std::int64_t>::max());
  if (fields.has("samples")) {
    message.samples = fields.integer("samples", 0, std::numeric_limits<std::int64_t>::max());
  }
  message.activity = activity(fields);
  message.peer = optional_rank(fields, "peer");
  if (fields.has("samples_per_second")) {
    message.samples_per_second = fields.non_negative("samples_per_second");
  }
  return message;
}

NewAssignment new_assignment(FieldReader& fields) {
  NewAssignment message;
  message.generation = fields.generation("generation");
  message.world_size = count(fields, "world_size", 1);
  message.global_rank.value = count(fields, "global_rank", 0, message.world_size - 1);
  message.group_world_size = count(fields, "group_world_size", 1);
  message.group_rank.value = count(fields, "group_rank", 0, message.group_world_size - 1);
  message.master_addr = fields.text("master_addr", kTextBytesMax);
  message.master_port = count(fields, "master_port", 0, kPortMax);
  message.restart_count = count(fields, "restart_count", 0);
  return message;
}

std::int64_t step(FieldReader& fields) {
  return fields.integer("step", 0, std::numeric_limits<std::int64_t>::max());
}

std::optional<FromWorker> from_worker(const std::string& type, FieldReader& fields) {
  if (type == "hello") {
    return Hello{.version = count(fields, "version", 1), .live = fields.flag("live", false)};
  }
  if (type == "progress") return progress(fields);
  if (type == "snapshot") return SnapshotTaken{.step = step(fields)};
  if (type == "publish") {
    return PublishValue{.key = blackboard_key(fields),
                        .value = fields.text("value", kValueBytesMax)};
  }
  if (type == "lookup") return LookupValue{.key = blackboard_key(fields)};
  if (type == "failed") {
    return Failed{.reason = std::string(cut(fields.text("reason", kMessageBytesMax))),
                  .peer = optional_rank(fields, "peer")};
  }
  if (type == "checkpoint") {
    return CheckpointSaved{.step = step(fields), .path = fields.text("path", kTextBytesMax)};
  }
  if (type == "aborted") return Aborted{.generation = fields.generation("generation")};
  if (type == "ready") return Ready{.generation = fields.generation("generation")};
  return std::nullopt;
}

std::optional<ToWorker> to_worker(const std::string& type, FieldReader& fields) {
  if (type == "assignment") return new_assignment(fields);
  if (type == "abort") {
    return Abort{.generation = fields.generation("generation"),
                 .reason = std::string(cut(fields.text("reason", kMessageBytesMax)))};
  }
  if (type == "value") {
    return Value{.key = blackboard_key(fields), .value = fields.text("value", kValueBytesMax)};
  }
  if (type == "drain") return Drain{};
  if (type == "stop") return Stop{};
  return std::nullopt;
}

template <class Message, class Read>
std::variant<Message, GrammarError> parse(std::string_view line, Read read) {
  if (line.size() >= kMessageBytesMax) return GrammarError{"the line is longer than 64 KiB"};
  auto parsed = flat_json::parse(line);
  if (const auto* mistake = std::get_if<flat_json::Mistake>(&parsed)) {
    return GrammarError{mistake->sentence};
  }
  FieldReader fields(std::get<flat_json::Object>(std::move(parsed)));
  const std::string type = fields.text("type", kTextBytesMax);
  std::optional<Message> message = read(type, fields);
  if (!fields.mistake() && !message) fields.refuse("type", "the name of a message");
  if (fields.mistake()) return GrammarError{*fields.mistake()};
  return *std::move(message);
}

}  // namespace

std::string to_line(const FromWorker& message) { return written(std::visit(Writer{}, message)); }
std::string to_line(const ToWorker& message) { return written(std::visit(Writer{}, message)); }

std::variant<FromWorker, GrammarError> parse_from_worker(std::string_view line) {
  return parse<FromWorker>(line, from_worker);
}

std::variant<ToWorker, GrammarError> parse_to_worker(std::string_view line) {
  return parse<ToWorker>(line, to_worker);
}

std::vector<std::string> LineReader::feed(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!broken_ && !bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const bool is_complete = newline != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, newline);
    if (pending_.size() + piece.size() >= kMessageBytesMax) {
      broken_ = true;
      break;
    }
    pending_ += piece;
    if (!is_complete) return lines;
    lines.push_back(std::exchange(pending_, {}));
    bytes.remove_prefix(newline + 1);
  }
  if (broken_) pending_ = {};
  return lines;
}

}  // namespace lrun::channel
