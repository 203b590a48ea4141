#include "launcher/run_options.h"

#include <sched.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "launcher/addresses.h"

namespace lrun::launcher {
namespace {

constexpr int kNodesMax = 100'000;
constexpr int kSlotsMax = 4096;
constexpr int kRestartsMax = 1'000'000;
constexpr int kPortMax = 65535;
constexpr double kSecondsMax = 30.0 * 24 * 3600;
constexpr std::size_t kRunIdBytesMax = 128;
constexpr std::size_t kNameBytesMax = 253;  // of a host name, RFC 1035
constexpr std::size_t kLabelsMax = 32;

// Thrown inside this file only: the first refusal ends the reading, parse_run() returns it.
struct Refused {
  std::string sentence;
};

std::string quoted(const OptionValue& value) { return value.place + "='" + value.text + "'"; }

std::optional<int> to_int(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

int int_between(const OptionValue& value, int low, int high) {
  const std::optional<int> number = to_int(value.text);
  if (!number || *number < low || *number > high) {
    throw Refused{quoted(value) + " is not accepted: write a whole number from " +
                  std::to_string(low) + " to " + std::to_string(high)};
  }
  return *number;
}

Duration seconds(const OptionValue& value, double low) {
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  const bool is_number = end != value.text.c_str() && *end == '\0' && std::isfinite(number);
  if (!is_number || number < low || number > kSecondsMax) {
    throw Refused{quoted(value) + " is not accepted: write a number of seconds" +
                  (low > 0 ? " above 0, such as 5 or 0.5" : ", such as 30, 0.5 or 0")};
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number));
}

NodeRange node_range(const OptionValue& value) {
  const std::size_t colon = value.text.find(':');
  const std::string low = value.text.substr(0, colon);
  const std::string high = colon == std::string::npos ? low : value.text.substr(colon + 1);
  const std::optional<int> min = to_int(low);
  const std::optional<int> max = to_int(high);
  if (!min || !max || *min < 1 || *max < *min || *max > kNodesMax) {
    throw Refused{quoted(value) + " is not accepted: write N or MIN:MAX with 1 <= MIN <= MAX <= " +
                  std::to_string(kNodesMax) + ", such as 2 or 1:4"};
  }
  return {*min, *max};
}

// CPUs this process may use, not those of the machine.
int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int slot_count(const OptionValue& value) {
  if (value.text == "cpu") return usable_cpus();
  const std::optional<int> number = to_int(value.text);
  if (!number || *number < 1 || *number > kSlotsMax) {
    throw Refused{quoted(value) + " is not accepted: write a number of workers from 1 to " +
                  std::to_string(kSlotsMax) + ", or cpu (here " + std::to_string(usable_cpus()) +
                  ")"};
  }
  return *number;
}

std::string one_of(const OptionValue& value, std::initializer_list<std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    if (value.text == word) return value.text;
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  throw Refused{quoted(value) + " is not accepted: write one of " + list};
}

bool is_printable(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return false;
  }
  return true;
}

std::string name_of_at_most(const OptionValue& value, std::size_t bytes_max) {
  if (value.text.size() > bytes_max || !is_printable(value.text)) {
    throw Refused{value.place + " is too long or has control characters: write at most " +
                  std::to_string(bytes_max) + " printable bytes"};
  }
  return value.text;
}

std::map<std::string, std::string> labels(const OptionValue& value) {
  std::map<std::string, std::string> found;
  std::string_view rest = value.text;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string_view::npos || found.size() == kLabelsMax) {
      throw Refused{quoted(value) + " is not accepted: write KEY=VALUE[,KEY=VALUE...], at most " +
                    std::to_string(kLabelsMax) + " of them"};
    }
    found[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
  }
  return found;
}

// The host is looked up later; here only what can never work is refused.
void check_endpoint(const OptionValue& value) {
  try {
    parse_endpoints(value.text);
  } catch (const std::invalid_argument& error) {
    throw Refused{value.place + ": " + error.what()};
  }
}

std::optional<int> optional_int(const ParsedOptions& parsed, std::string_view name, int high) {
  if (parsed.text(name).empty()) return std::nullopt;
  return int_between(parsed.at(name), 0, high);
}

void read_network(const ParsedOptions& parsed, RunOptions& options) {
  check_endpoint(parsed.at("rdzv-endpoint"));
  options.endpoint = parsed.text("rdzv-endpoint");
  options.standalone = parsed.is_on("standalone");
  options.rendezvous_port = int_between(parsed.at("rdzv-port"), 0, kPortMax);
  if (!parsed.text("rdzv-id").empty()) {
    options.run_id = name_of_at_most(parsed.at("rdzv-id"), kRunIdBytesMax);
  }
  options.metrics_port = optional_int(parsed, "metrics-port", kPortMax);
  options.metrics_address = parsed.text("metrics-address");
  options.tls_dir = parsed.text("tls");
  options.insecure_network = parsed.is_on("insecure-network");
  options.local_addr = name_of_at_most(parsed.at("local-addr"), kNameBytesMax);
}

void read_times(const ParsedOptions& parsed, RunOptions& options) {
  constexpr double kAboveZero = 1e-3;
  options.lease = seconds(parsed.at("lease"), kAboveZero);
  options.heartbeat = seconds(parsed.at("heartbeat"), kAboveZero);
  options.last_call = seconds(parsed.at("last-call"), 0);
  options.join_timeout = seconds(parsed.at("join-timeout"), kAboveZero);
  if (parsed.is_given("shutdown-timeout")) {
    options.shutdown_timeout = seconds(parsed.at("shutdown-timeout"), 0);
  }
  if (!parsed.text("stall-timeout").empty()) {
    options.stall_timeout = seconds(parsed.at("stall-timeout"), kAboveZero);
  }
  if (options.lease < 2 * options.heartbeat) {
    throw Refused{quoted(parsed.at("lease")) + " is shorter than two heartbeats (" +
                  parsed.at("heartbeat").place + "='" + parsed.text("heartbeat") +
                  "'): a live node would be lost; raise --lease or lower --heartbeat"};
  }
}

void read_workers(const ParsedOptions& parsed, RunOptions& options) {
  if (parsed.is_given("nnodes")) options.nodes = node_range(parsed.at("nnodes"));
  if (parsed.is_given("nproc-per-node")) options.slots = slot_count(parsed.at("nproc-per-node"));
  options.max_restarts = int_between(parsed.at("max-restarts"), 0, kRestartsMax);
  options.node_rank = optional_int(parsed, "node-rank", kNodesMax - 1);
  options.node_name = name_of_at_most(parsed.at("node-name"), kNameBytesMax);
  options.node_labels = labels(parsed.at("node-label"));
  options.role = name_of_at_most(parsed.at("role"), kNameBytesMax);
  options.no_python = parsed.is_on("no-python");
  options.is_module = parsed.is_on("module");
  if (options.no_python && options.is_module) {
    throw Refused{
        "--module and --no-python exclude each other: a module needs an interpreter; leave one "
        "out"};
  }
  options.log_dir = parsed.text("log-dir");
  options.redirects = parsed.text("redirects");
  options.tee = parsed.text("tee");
}

void read_logging(const ParsedOptions& parsed, RunOptions& options) {
  options.log_format = one_of(parsed.at("log-format"), {"logfmt", "json"});
  if (!parsed.text("log-level").empty()) {
    options.log_level = one_of(parsed.at("log-level"), {"error", "warn", "info", "debug"});
  }
  options.wants_help = parsed.is_on("help");
  options.wants_version = parsed.is_on("version");
}

std::vector<std::string> given_words(const ParsedOptions& parsed) {
  std::vector<std::string> words;
  for (const OptionSpec& spec : run_option_table()) {
    if (!parsed.is_given(spec.name)) continue;
    const std::string name = "--" + std::string(spec.name);
    words.push_back(spec.kind == OptionKind::Switch && parsed.is_on(spec.name)
                        ? name
                        : name + "=" + parsed.text(spec.name));
  }
  return words;
}

}  // namespace

std::variant<RunCommand, UsageError> parse_run(std::span<const std::string> words,
                                               const Environment& environment) {
  auto parsed = parse_command_line(run_option_table(), words, environment);
  if (auto* error = std::get_if<UsageError>(&parsed)) return *error;
  auto& line = std::get<CommandLine>(parsed);
  RunCommand command;
  try {
    read_logging(line.options, command.options);
    if (command.options.wants_help || command.options.wants_version) return command;
    read_network(line.options, command.options);
    read_times(line.options, command.options);
    read_workers(line.options, command.options);
  } catch (const Refused& refused) {
    return UsageError{refused.sentence};
  }
  command.options.repeated = given_words(line.options);
  command.program = std::move(line.program);
  return command;
}

}  // namespace lrun::launcher
