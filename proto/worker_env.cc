#include "proto/worker_env.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lrun {
namespace {

// More workers than any machine room holds; keeps sums of sizes far from overflow.
constexpr int kWorldSizeMax = 1 << 24;
constexpr int kPortMax = 65535;
constexpr int kIntMax = std::numeric_limits<int>::max();
// Values are shown in error lines up to this length.
constexpr std::size_t kShownBytesMax = 64;

// A value from outside, cut and without control characters, so that it cannot forge a line.
std::string shown(std::string_view value) {
  std::string text = "'";
  for (const char c : value.substr(0, kShownBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  text += value.size() > kShownBytesMax ? "…'" : "'";
  return text;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Reads variables one after the other and keeps the first mistake.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  const std::string* find(std::string_view name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? nullptr : &found->second;
  }

  std::string text(std::string_view name, std::string fallback) const {
    const std::string* value = find(name);
    return value ? *value : std::move(fallback);
  }

  int number(std::string_view name, int fallback, int least, int most) {
    const std::string* value = find(name);
    if (!value) return fallback;
    const std::optional<int> parsed = whole_number<int>(*value);
    if (parsed && *parsed >= least && *parsed <= most) return *parsed;
    refuse(name, *value,
           most == kIntMax
               ? "a whole number of at least " + std::to_string(least)
               : "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return fallback;
  }

  int size(std::string_view name, int fallback = 1) {
    return number(name, fallback, 1, kWorldSizeMax);
  }

  // A place among `size` others.
  int place(std::string_view name, int size) { return number(name, 0, 0, size - 1); }

  Generation generation(std::string_view name) {
    const std::string* value = find(name);
    if (!value) return {};
    const std::string_view text = *value;
    const std::size_t dot = text.find('.');
    if (dot != std::string_view::npos) {
      const auto term = whole_number<std::uint64_t>(text.substr(0, dot));
      const auto number = whole_number<std::uint64_t>(text.substr(dot + 1));
      if (term && number) return {.term = *term, .number = *number};
    }
    refuse(name, text, "term.number, such as 17.3");
    return {};
  }

  const std::optional<EnvironmentError>& error() const { return error_; }

 private:
  void refuse(std::string_view name, std::string_view value, const std::string& accepted) {
    if (error_) return;
    error_ = EnvironmentError{std::string(name) + "=" + shown(value) +
                              " is not accepted: it must be " + accepted +
                              "; start the program through lrun, or unset RANK and WORLD_SIZE"};
  }

  const Environment& environment_;
  std::optional<EnvironmentError> error_;
};

}  // namespace

WorkerEnv alone() { return {}; }

Environment to_environment(const WorkerEnv& worker) {
  const auto text = [](int number) { return std::to_string(number); };
  Environment result{
      {"LOCAL_RANK", text(worker.local_rank.value)},
      {"LOCAL_WORLD_SIZE", text(worker.local_world_size)},
      {"RANK", text(worker.global_rank.value)},
      {"WORLD_SIZE", text(worker.world_size)},
      {"GROUP_RANK", text(worker.group_rank.value)},
      {"GROUP_WORLD_SIZE", text(worker.group_world_size)},
      {"ROLE_NAME", worker.role_name},
      {"ROLE_RANK", text(worker.role_rank)},
      {"ROLE_WORLD_SIZE", text(worker.role_world_size)},
      {"MASTER_ADDR", worker.master_addr},
      {"MASTER_PORT", text(worker.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", text(worker.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", text(worker.max_restarts)},
      {"TORCHELASTIC_RUN_ID", worker.run_id},
      // The worker of global rank 0 serves PyTorch's store: lrun links no LibTorch.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", worker.error_file},
      {"LRUN_RUN_ID", worker.run_id},
      {"LRUN_GENERATION", to_string(worker.generation)},
      {"LRUN_RESTART_COUNT", text(worker.restart_count)},
  };
  if (worker.channel_fd >= 0) result["LRUN_CHANNEL_FD"] = text(worker.channel_fd);
  return result;
}

std::variant<WorkerEnv, EnvironmentError> from_environment(const Environment& environment) {
  Reader reader(environment);
  if (!reader.find("RANK") && !reader.find("WORLD_SIZE")) return alone();

  WorkerEnv worker;
  worker.world_size = reader.size("WORLD_SIZE");
  worker.global_rank.value = reader.place("RANK", worker.world_size);
  worker.local_world_size = reader.size("LOCAL_WORLD_SIZE");
  worker.local_rank.value = reader.place("LOCAL_RANK", worker.local_world_size);
  worker.group_world_size = reader.size("GROUP_WORLD_SIZE");
  worker.group_rank.value = reader.place("GROUP_RANK", worker.group_world_size);
  worker.role_name = reader.text("ROLE_NAME", worker.role_name);
  worker.role_world_size = reader.size("ROLE_WORLD_SIZE");
  worker.role_rank = reader.place("ROLE_RANK", worker.role_world_size);
  worker.master_addr = reader.text("MASTER_ADDR", worker.master_addr);
  worker.master_port = reader.number("MASTER_PORT", worker.master_port, 0, kPortMax);
  worker.run_id = reader.text("LRUN_RUN_ID", reader.text("TORCHELASTIC_RUN_ID", worker.run_id));
  worker.generation = reader.generation("LRUN_GENERATION");
  const int torch_count = reader.number("TORCHELASTIC_RESTART_COUNT", 0, 0, kIntMax);
  worker.restart_count = reader.number("LRUN_RESTART_COUNT", torch_count, 0, kIntMax);
  worker.max_restarts = reader.number("TORCHELASTIC_MAX_RESTARTS", 0, 0, kIntMax);
  worker.error_file = reader.text("TORCHELASTIC_ERROR_FILE", "");
  worker.channel_fd = reader.number("LRUN_CHANNEL_FD", -1, 0, kIntMax);
  if (reader.error()) return *reader.error();
  return worker;
}

}  // namespace lrun
