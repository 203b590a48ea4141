#include "launcher/place.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "launcher/addresses.h"
#include "launcher/discovery.h"
#include "launcher/runtime_folder.h"

namespace lrun::launcher {
namespace {

using rendezvous::Endpoint;

std::string random_name() {
  std::random_device source;
  std::string digits;
  for (int i = 0; i < 16; ++i) digits += "0123456789abcdef"[source() & 15];
  return digits;
}

std::string address_for_others(const RunOptions& options, bool leaves_machine) {
  if (!options.local_addr.empty()) return options.local_addr;
  const std::string reachable = leaves_machine ? reachable_address() : "";
  return reachable.empty() ? "127.0.0.1" : reachable;
}

// A job that nobody outside this process tree needs to find.
Place on_this_machine(const RunOptions& options, Place place) {
  if (options.standalone) place.run_id = random_name();
  SocketChoice choice = choose_socket(runtime_folder(), place.run_id, false);
  place.socket = choice.path;
  place.discovery_lock = std::move(choice.lock);
  place.serves = true;
  place.socket_is_needed = place.nodes.max > 1;
  place.address = address_for_others(options, false);
  return place;
}

// Several nodes, no endpoint: terminals of one machine meet at a socket, others by the printed
// line.
Place by_socket(const RunOptions& options, Place place, const std::vector<std::string>& command) {
  if (!options.run_id) {
    place.run_id = run_id_of_command(command, std::filesystem::current_path().string(),
                                     place.nodes.min, place.nodes.max);
  }
  SocketChoice choice = choose_socket(runtime_folder(), place.run_id, true);
  place.socket = choice.path;
  place.discovery_lock = std::move(choice.lock);
  place.leaves_machine = true;
  place.address = address_for_others(options, true);
  if (choice.is_served) {
    place.join = {{.unix_path = choice.path, .host = "", .port = 0}};
    return place;
  }
  place.serves = true;
  place.socket_is_needed = true;
  if (!reachable_address().empty()) {
    place.listen = {{.unix_path = "", .host = "0.0.0.0", .port = options.rendezvous_port}};
    place.announces = true;
  }
  return place;
}

// An endpoint was given: the node that its host names serves, loopback always.
std::variant<Place, UsageError> by_endpoint(const RunOptions& options, Role role, Place place) {
  place.join = parse_endpoints(options.endpoint);
  const Endpoint& first = place.join.front();
  place.leaves_machine = std::any_of(place.join.begin(), place.join.end(), [](const Endpoint& one) {
    return !rendezvous::is_loopback(one);
  });
  if (!options.local_addr.empty()) place.address = options.local_addr;
  if (role == Role::AgentOnly || !first.unix_path.empty() || !is_this_machine(first.host)) {
    if (first.port == 0 && first.unix_path.empty()) {
      return UsageError{
          "--rdzv-endpoint='" + options.endpoint +
          "' has port 0, which only the serving node can choose; give the port that it printed"};
    }
    return place;
  }
  if (first.port == 0 && place.nodes.max > 1) {
    return UsageError{"--rdzv-endpoint='" + options.endpoint +
                      "' has port 0, which no other node can learn; "
                      "choose a port, such as " +
                      std::to_string(kDefaultRendezvousPort)};
  }
  SocketChoice choice = choose_socket(runtime_folder(), place.run_id, false);
  place.socket = choice.path;
  place.discovery_lock = std::move(choice.lock);
  place.serves = true;
  place.socket_is_needed = true;
  place.joins_if_taken = first.port != 0 && role == Role::Run;
  const bool is_local = rendezvous::is_loopback(first);
  place.listen = {
      {.unix_path = "", .host = is_local ? "127.0.0.1" : "0.0.0.0", .port = first.port}};
  if (place.address.empty()) place.address = address_for_others(options, !is_local);
  return place;
}

// `lrun rendezvous` without an endpoint: every interface, the usual port.
Place as_service(const RunOptions& options, Place place) {
  SocketChoice choice = choose_socket(runtime_folder(), place.run_id, false);
  place.socket = choice.path;
  place.discovery_lock = std::move(choice.lock);
  place.serves = true;
  place.socket_is_needed = true;
  place.leaves_machine = true;
  const int port = options.rendezvous_port != 0 ? options.rendezvous_port : kDefaultRendezvousPort;
  place.listen = {{.unix_path = "", .host = "0.0.0.0", .port = port}};
  return place;
}

// In a step of srun: the first host serves, a port of the step's own small range.
Place by_slurm(const RunOptions& options, Place place, const SlurmStep& step) {
  const std::string socket = choose_socket(runtime_folder(), place.run_id, false).path;
  place.leaves_machine = place.nodes.max > 1;
  place.address = address_for_others(options, place.leaves_machine);
  // Tasks of one machine, as in a test cluster, meet at the socket even where names resolve to
  // nothing.
  const std::string shared_socket =
      runtime_folder() + "/jobs/" + safe_file_name(place.run_id) + ".sock";
  if (step.node_rank == 0) {
    place.serves = true;
    place.socket = socket;
    place.socket_is_needed = place.nodes.max > 1;
    if (place.leaves_machine) {
      for (int i = 0; i < kSlurmPortTries; ++i) {
        place.listen.push_back({.unix_path = "", .host = "0.0.0.0", .port = step.first_port + i});
      }
    }
    return place;
  }
  place.join.push_back({.unix_path = shared_socket, .host = "", .port = 0});
  for (int i = 0; i < kSlurmPortTries; ++i) {
    place.join.push_back(
        {.unix_path = "", .host = step.hosts.front(), .port = step.first_port + i});
  }
  return place;
}

}  // namespace

std::variant<Place, UsageError> choose_place(const RunOptions& options, Role role,
                                             const Scheduler& scheduler,
                                             const std::vector<std::string>& command) {
  Place place;
  const auto* step = std::get_if<SlurmStep>(&scheduler);
  if (const auto* outside = std::get_if<OutsideStep>(&scheduler)) place.warning = outside->warning;
  const bool follows_step = step != nullptr && !options.standalone && options.endpoint.empty();
  if (follows_step) {
    place.nodes = {step->nodes, step->nodes};
    place.fixed_rank = GroupRank{step->node_rank};
  }
  if (options.nodes) place.nodes = *options.nodes;
  if (options.node_rank) place.fixed_rank = GroupRank{*options.node_rank};
  place.slots = options.slots.value_or(step != nullptr ? step->slots : 1);
  place.run_id = options.run_id.value_or(follows_step ? step->run_id : "none");
  if (place.fixed_rank && place.fixed_rank->value >= place.nodes.max) {
    return UsageError{"--node-rank=" + std::to_string(place.fixed_rank->value) +
                      " is not below the " + std::to_string(place.nodes.max) +
                      " nodes of --nnodes; ranks begin at 0"};
  }
  if (!options.endpoint.empty() && !options.standalone)
    return by_endpoint(options, role, std::move(place));
  if (role == Role::ServiceOnly && !options.standalone)
    return as_service(options, std::move(place));
  if (role == Role::AgentOnly) {
    return UsageError{
        "lrun agent joins a service and was told of none; give --rdzv-endpoint=HOST:PORT"};
  }
  if (follows_step) return by_slurm(options, std::move(place), *step);
  if (options.standalone || place.nodes.max == 1) return on_this_machine(options, std::move(place));
  return by_socket(options, std::move(place), command);
}

}  // namespace lrun::launcher
