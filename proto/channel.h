// Messages between an agent and one worker: newline-delimited JSON on an inherited socket pair.
//
// Owns the grammar and its limits; refuses to know sockets. Any language can speak it: one JSON
// object a line, `"type"` names the message, unknown keys are ignored, unknown types are an error.
// The first message a worker sends is `hello`. See docs/channel.md for the lines themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/ids.h"

namespace lrun::channel {

inline constexpr int kVersion = 1;
// A longer line breaks the grammar; bounds the buffer of the reader.
inline constexpr std::size_t kMessageBytesMax = 64 * 1024;
// Blackboard limits, checked by both ends (architecture.md §4).
inline constexpr std::size_t kKeyBytesMax = 256;
inline constexpr std::size_t kValueBytesMax = 4 * 1024;
// Lines of text (reasons, paths) are cut to this before sending.
inline constexpr std::size_t kTextBytesMax = 4 * 1024;

// --- worker to agent ---------------------------------------------------------------------------

struct Hello {
  int version = kVersion;
  bool live = false;  // answers `abort` and `assignment` instead of being restarted
  friend bool operator==(const Hello&, const Hello&) = default;
};

// What the worker is at. Sent at least once a second by a trainer's communication thread, so that
// silence is information.
enum class Activity { Computing, Waiting, Saving };

struct Progress {
  std::int64_t step = 0;     // optimizer steps completed
  std::int64_t samples = 0;  // samples of the whole job consumed so far
  Activity activity = Activity::Computing;
  std::optional<GlobalRank> peer{};  // whom it waits for
  double samples_per_second = 0;     // of the whole job
  friend bool operator==(const Progress&, const Progress&) = default;
};

struct SnapshotTaken {
  std::int64_t step = 0;
  friend bool operator==(const SnapshotTaken&, const SnapshotTaken&) = default;
};

struct PublishValue {
  std::string key{};
  std::string value{};
  friend bool operator==(const PublishValue&, const PublishValue&) = default;
};

// Answered by `Value` as soon as somebody of the same generation has published the key.
struct LookupValue {
  std::string key{};
  friend bool operator==(const LookupValue&, const LookupValue&) = default;
};

struct Failed {
  std::string reason{};
  std::optional<GlobalRank> peer{};  // set when this worker is a victim of that peer's end
  friend bool operator==(const Failed&, const Failed&) = default;
};

struct CheckpointSaved {
  std::int64_t step = 0;
  std::string path{};
  friend bool operator==(const CheckpointSaved&, const CheckpointSaved&) = default;
};

struct Aborted {
  Generation generation{};
  friend bool operator==(const Aborted&, const Aborted&) = default;
};

struct Ready {
  Generation generation{};
  friend bool operator==(const Ready&, const Ready&) = default;
};

using FromWorker = std::variant<Hello, Progress, SnapshotTaken, PublishValue, LookupValue, Failed,
                                CheckpointSaved, Aborted, Ready>;

// --- agent to worker ---------------------------------------------------------------------------

struct NewAssignment {
  Generation generation{};
  GlobalRank global_rank{};
  int world_size = 1;
  GroupRank group_rank{};
  int group_world_size = 1;
  std::string master_addr{};
  int master_port = 0;
  int restart_count = 0;
  friend bool operator==(const NewAssignment&, const NewAssignment&) = default;
};

struct Abort {
  Generation generation{};
  std::string reason{};
  friend bool operator==(const Abort&, const Abort&) = default;
};

struct Value {
  std::string key{};
  std::string value{};
  friend bool operator==(const Value&, const Value&) = default;
};

struct Drain {
  friend bool operator==(const Drain&, const Drain&) = default;
};

struct Stop {
  friend bool operator==(const Stop&, const Stop&) = default;
};

using ToWorker = std::variant<NewAssignment, Abort, Value, Drain, Stop>;

// --- lines -------------------------------------------------------------------------------------

// Why a line is not a message; one sentence, safe to print.
struct GrammarError {
  std::string sentence;
};

// One line with its newline, never longer than kMessageBytesMax (texts are cut to their limits).
// Bytes that are not UTF-8 are replaced in texts; in `value` they are refused by the sender.
std::string to_line(const FromWorker& message);
std::string to_line(const ToWorker& message);

// `line` without its newline.
std::variant<FromWorker, GrammarError> parse_from_worker(std::string_view line);
std::variant<ToWorker, GrammarError> parse_to_worker(std::string_view line);

// Collects bytes into lines. After a line beyond kMessageBytesMax it stays broken for ever: a
// worker that breaks the grammar is treated as plain, never trusted again.
class LineReader {
 public:
  // Complete lines without newline, in order.
  std::vector<std::string> feed(std::string_view bytes);
  bool is_broken() const { return broken_; }

 private:
  std::string pending_;
  bool broken_ = false;
};

}  // namespace lrun::channel
