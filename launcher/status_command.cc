#include "launcher/status_command.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "launcher/addresses.h"
#include "launcher/discovery.h"
#include "launcher/exit_codes.h"
#include "launcher/option_parser.h"
#include "launcher/runtime_folder.h"
#include "launcher/status_view.h"
#include "rendezvous/client.h"
#include "rendezvous/credentials.h"

namespace lrun::launcher {
namespace {

using rendezvous::Client;

constexpr auto kTable = std::to_array<OptionSpec>({
    {"json", OptionKind::Switch, 0, "", "", "One JSON document on stdout.", "", false},
    {"rdzv-endpoint", OptionKind::Value, 0, "HOST:PORT", "",
     "Ask there; none: jobs of this machine.", "", true},
    {"rdzv-id", OptionKind::Value, 0, "NAME", "", "Name of the job; needed when several run.", "",
     true},
    {"tls", OptionKind::Value, 0, "DIR", "", "Folder with ca.crt, tls.crt and tls.key.", "", false},
    {"insecure-network", OptionKind::Switch, 0, "", "", "Speak without TLS.", "", false},
    {"timeout", OptionKind::Value, 0, "SECONDS", "5", "Longest wait for the answer.", "", false},
    {"help", OptionKind::Switch, 'h', "", "", "Print this and exit.", "", false},
});

// The command ends here: what to print and with which code.
struct Ended {
  std::string sentence;
  int exit_code = kExitUsage;
};

Client::Options client_options(const ParsedOptions& options) {
  Client::Options client;
  char* end = nullptr;
  const double seconds = std::strtod(options.text("timeout").c_str(), &end);
  constexpr double kTimeoutMax = 3600;
  if (*end != '\0' || !(seconds > 0) || seconds > kTimeoutMax) {
    throw Ended{options.at("timeout").place + "='" + options.text("timeout") +
                "' is not accepted: write a number of seconds above 0, such as 5"};
  }
  client.call_limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  client.insecure_network = options.is_on("insecure-network");
  return client;
}

void add_credentials(const ParsedOptions& options, Client::Options& client) {
  const std::string& folder = options.text("tls");
  if (!folder.empty()) {
    client.credentials = rendezvous::load_credentials(folder);
  } else if (!rendezvous::is_loopback(client.endpoints.front()) && !client.insecure_network) {
    client.credentials = rendezvous::load_or_make_credentials(rendezvous::user_tls_folder());
  }
}

rendezvous::Status ask(Client::Options client) {
  const std::string where = to_string(client.endpoints.front());
  const auto answer = rendezvous::get_status_now(std::move(client));
  if (const auto* unreachable = std::get_if<rendezvous::Unreachable>(&answer)) {
    throw Ended{unreachable->sentence.empty() ? "no rendezvous answered at " + where
                                              : unreachable->sentence,
                kExitRendezvous};
  }
  const auto& reply = std::get<Client::StatusAnswer>(answer);
  if (const auto* refusal = std::get_if<Refusal>(&reply))
    throw Ended{refusal->sentence, kExitRendezvous};
  return std::get<rendezvous::Status>(reply);
}

rendezvous::Status ask_this_machine(const ParsedOptions& options, const Client::Options& client) {
  const std::string& wanted = options.text("rdzv-id");
  std::vector<rendezvous::Status> found;
  for (const std::string& path : live_sockets(runtime_folder())) {
    Client::Options one = client;
    one.endpoints = {{.unix_path = path, .host = "", .port = 0}};
    try {
      rendezvous::Status status = ask(std::move(one));
      if (wanted.empty() || status.config.run_id == wanted) found.push_back(std::move(status));
    } catch (const Ended&) {
      // A job that ended between the listing and the question is no longer here.
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw Ended{wanted.empty() ? "no job of yours runs on this machine; for another machine give "
                                 "--rdzv-endpoint=HOST:PORT"
                               : "no job named '" + wanted +
                                     "' runs on this machine; give --rdzv-endpoint=HOST:PORT",
                kExitRendezvous};
  }
  std::string names;
  for (const auto& status : found) names += " " + status.config.run_id;
  throw Ended{"several jobs run on this machine; give --rdzv-id with one of:" + names};
}

std::size_t terminal_columns(const Environment& environment) {
  constexpr std::size_t kColumnsDefault = 80;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const auto found = environment.find("COLUMNS");
  const long columns =
      found == environment.end() ? 0 : std::strtol(found->second.c_str(), nullptr, 10);
  return columns > 0 ? static_cast<std::size_t>(columns) : kColumnsDefault;
}

int show(const ParsedOptions& options, const Environment& environment) {
  Client::Options client = client_options(options);
  rendezvous::Status status;
  if (options.text("rdzv-endpoint").empty()) {
    status = ask_this_machine(options, client);
  } else {
    client.endpoints = parse_endpoints(options.text("rdzv-endpoint"));
    client.run_id = options.text("rdzv-id");
    add_credentials(options, client);
    status = ask(std::move(client));
  }
  const std::string text = options.is_on("json")
                               ? status_as_json(status)
                               : status_as_text(status, terminal_columns(environment));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return status_exit_code(status);
}

}  // namespace

int status_command(std::span<const std::string> words, const Environment& environment) {
  auto parsed = parse_command_line(kTable, words, environment);
  bool wants_json = false;
  Ended ended;
  try {
    if (auto* error = std::get_if<UsageError>(&parsed)) throw Ended{error->sentence};
    const auto& line = std::get<CommandLine>(parsed);
    wants_json = line.options.is_on("json");
    if (line.options.is_on("help")) {
      std::fputs(
          ("usage: lrun status [options]\n\n" + help_for(kTable, terminal_columns(environment)))
              .c_str(),
          stdout);
      return kExitSucceeded;
    }
    if (!line.program.empty())
      throw Ended{"lrun status takes no word such as '" + line.program.front() + "'; leave it out"};
    return show(line.options, environment);
  } catch (const Ended& reason) {
    ended = reason;
  } catch (const std::exception& error) {
    ended = {error.what(), kExitUsage};
  }
  std::fprintf(stderr, "lrun status: %s\n", ended.sentence.c_str());
  if (wants_json)
    std::fputs((nlohmann::json{{"schema", kStatusSchema}, {"error", ended.sentence}}.dump() + "\n")
                   .c_str(),
               stdout);
  return ended.exit_code;
}

}  // namespace lrun::launcher
