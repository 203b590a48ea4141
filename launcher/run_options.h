// The options of `lrun run`, `lrun agent` and `lrun rendezvous`: the table, and their checked
// values.
//
// Owns names, defaults and what is accepted; each refusal is one line, before anything starts.
// Refuses to act. docs/lrun.md lists the same table; a test compares.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "launcher/option_parser.h"
#include "proto/ids.h"

namespace lrun::launcher {

struct NodeRange {
  int min = 1;
  int max = 1;
};

// Everything a run is told, checked. Fields that a scheduler may fill stay optional here.
struct RunOptions {
  std::optional<NodeRange> nodes;  // none: 1, or what the scheduler says
  std::optional<int> slots;        // workers on this node
  bool standalone = false;
  std::string endpoint;  // as given: "host:port", "a,b", "unix:/path", or empty
  std::optional<std::string> run_id;
  int rendezvous_port = 0;  // 0: the system chooses
  int max_restarts = 0;
  std::string log_dir;  // empty: a temporary folder
  std::string redirects = "0";
  std::string tee = "0";
  std::string role = "default";
  std::optional<int> node_rank;
  std::string local_addr;
  std::string node_name;
  std::map<std::string, std::string> node_labels;
  bool no_python = false;
  bool is_module = false;
  std::optional<int> metrics_port;
  std::string metrics_address = "127.0.0.1";
  std::string tls_dir;
  bool insecure_network = false;
  Duration lease{};
  Duration heartbeat{};
  Duration last_call{};
  Duration join_timeout{};
  std::optional<Duration> shutdown_timeout;  // none: 30 s, 25 s in a Slurm step
  std::optional<Duration> stall_timeout;
  std::string log_level;
  std::string log_format;
  bool wants_help = false;
  bool wants_version = false;
  // Options that were given, spelled for a command line: what `agent` children and the printed
  // line for other nodes repeat.
  std::vector<std::string> repeated;
};

struct RunCommand {
  RunOptions options;
  std::vector<std::string> program;
};

std::span<const OptionSpec> run_option_table();

std::variant<RunCommand, UsageError> parse_run(std::span<const std::string> words,
                                               const Environment& environment);

}  // namespace lrun::launcher
