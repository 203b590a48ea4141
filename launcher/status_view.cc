#include "launcher/status_view.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/exit_codes.h"
#include "launcher/words.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::ordered_json;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Json as_json(const FirstCause& cause) {
  Json json{{"kind", word(cause.kind)}, {"node", cause.node.value}};
  json["global_rank"] = cause.global_rank ? Json(cause.global_rank->value) : Json();
  json["pid"] = cause.pid;
  json["code"] = cause.code;
  json["sentence"] = cause.sentence;
  return json;
}

Json as_json(const rendezvous::NodeStatus& node) {
  Json json{{"node", node.facts.node.value}, {"role", word(node.role)},
            {"state", word(node.state)},     {"draining", node.draining},
            {"slots", node.facts.slots},     {"address", node.facts.address}};
  json["group_rank"] = node.assignment ? Json(node.assignment->group_rank.value) : Json();
  json["first_global_rank"] =
      node.assignment ? Json(node.assignment->first_global_rank.value) : Json();
  json["step"] = node.progress.step;
  json["samples"] = node.progress.samples;
  json["samples_per_second"] = node.progress.samples_per_second;
  json["lease_left_seconds"] = in_seconds(node.lease_left);
  return json;
}

int participants(const rendezvous::Status& status) {
  return static_cast<int>(
      std::count_if(status.nodes.begin(), status.nodes.end(), [](const auto& node) {
        return node.role == rendezvous::Role::Participant ||
               node.role == rendezvous::Role::Finished;
      }));
}

// Cut in the middle, so that both the head and the number at the end of a host name stay.
std::string fitted(const std::string& text, std::size_t width) {
  if (text.size() <= width || width < 5) return text;
  const std::size_t head = (width - 1) / 2;
  return text.substr(0, head) + "…" + text.substr(text.size() - (width - 1 - head));
}

std::string row(const rendezvous::NodeStatus& node, std::size_t name_width) {
  std::string name = fitted(node.facts.node.value, name_width);
  name.resize(std::max(name.size(), name_width), ' ');
  const std::string place =
      node.assignment ? std::to_string(node.assignment->group_rank.value) : "-";
  char line[160];
  std::snprintf(line, sizeof line, "%5s %5d  %-11s %-9s %9lld %11.1f", place.c_str(),
                node.facts.slots, std::string(word(node.role)).c_str(),
                std::string(word(node.state)).c_str(), static_cast<long long>(node.progress.step),
                node.progress.samples_per_second);
  return name + line + (node.draining ? "  draining" : "");
}

}  // namespace

std::string status_as_json(const rendezvous::Status& status) {
  Json json{{"schema", kStatusSchema},
            {"run_id", status.config.run_id},
            {"phase", word(status.phase)},
            {"generation", to_string(status.generation)},
            {"generation_reason", word(status.reason)},
            {"world_size", status.world_size},
            {"nodes_min", status.config.min_nodes},
            {"nodes_max", status.config.max_nodes},
            {"restarts_spent", status.restarts_spent},
            {"restarts_max", status.config.max_restarts}};
  Json kinds = Json::object();
  for (const auto& [kind, count] : status.restarts_by_kind) kinds[std::string(word(kind))] = count;
  json["restarts_by_cause"] = std::move(kinds);
  json["nodes"] = Json::array();
  for (const auto& node : status.nodes) json["nodes"].push_back(as_json(node));
  json["outcome"] = status.outcome ? Json(word(*status.outcome)) : Json();
  json["last_failure"] = status.cause ? as_json(*status.cause) : Json();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string status_as_text(const rendezvous::Status& status, std::size_t columns) {
  std::ostringstream out;
  out << "job " << status.config.run_id << ": " << word(status.phase);
  if (status.outcome) out << ", " << word(*status.outcome);
  out << "; generation " << to_string(status.generation) << " (" << word(status.reason) << "), "
      << participants(status) << " of " << status.config.min_nodes << ":" << status.config.max_nodes
      << " nodes, " << status.world_size << " workers; restarts " << status.restarts_spent << " of "
      << status.config.max_restarts << "\n";
  if (status.cause) out << "last failure: " << status.cause->sentence << "\n";
  if (status.nodes.empty()) return out.str();
  constexpr std::size_t kOtherColumns = 56;
  const std::size_t name_width = std::max<std::size_t>(
      8, std::min<std::size_t>(32, columns - std::min(columns, kOtherColumns)));
  out << std::string("NODE") + std::string(name_width - 4, ' ')
      << " RANK SLOTS  ROLE        STATE          STEP   SAMPLES/S\n";
  for (const auto& node : status.nodes) out << row(node, name_width) << "\n";
  return out.str();
}

int status_exit_code(const rendezvous::Status& status) {
  if (status.outcome)
    return *status.outcome == Outcome::Succeeded ? kExitSucceeded : kExitWorkersFailed;
  return participants(status) < status.config.min_nodes ? kExitWorkersFailed : kExitSucceeded;
}

}  // namespace lrun::launcher
