#include "rendezvous/refusals.h"

#include <algorithm>
#include <chrono>

namespace lrun::rendezvous {
namespace {

Refusal bad_request(std::string sentence) {
  return {RefuseReason::BadRequest, std::move(sentence)};
}

// Names go into sentences and logs, so they consist of visible ASCII only.
bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char symbol) { return symbol > ' ' && symbol < 127; });
}

std::optional<Refusal> check_text(const std::string& what, const std::string& text,
                                  std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    return bad_request(what + " of " + std::to_string(text.size()) +
                       " bytes; accepted are at most " + std::to_string(bytes_max));
  }
  if (!is_printable(text))
    return bad_request(what + " with spaces or unprintable characters; use visible ASCII");
  return std::nullopt;
}

std::optional<Refusal> check_range(const std::string& what, int value, int low, int high) {
  if (value >= low && value <= high) return std::nullopt;
  return bad_request(what + " " + std::to_string(value) + "; accepted is " + std::to_string(low) +
                     " to " + std::to_string(high));
}

std::optional<Refusal> check_labels(const NodeFacts& facts) {
  if (facts.labels.size() > kLabelsMax) {
    return bad_request(std::to_string(facts.labels.size()) + " labels; accepted are at most " +
                       std::to_string(kLabelsMax));
  }
  for (const auto& [label, value] : facts.labels) {
    if (auto refusal = check_text("label", label, kNameBytesMax)) return refusal;
    if (auto refusal = check_text("label value", value, kNameBytesMax)) return refusal;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> check(const NodeFacts& facts, const Config& config) {
  if (facts.node.value.empty()) return bad_request("empty node name; name the node");
  if (auto refusal = check_text("node name", facts.node.value, kNameBytesMax)) return refusal;
  if (auto refusal = check_text("role", facts.role, kRoleBytesMax)) return refusal;
  if (auto refusal = check_text("address", facts.address, kNameBytesMax)) return refusal;
  if (auto refusal = check_range("slots", facts.slots, 1, kSlotsMax)) return refusal;
  if (auto refusal = check_range("master port", facts.master_port, 0, 65535)) return refusal;
  if (facts.fixed_rank) {
    auto refusal = check_range("node rank", facts.fixed_rank->value, 0, config.max_nodes - 1);
    if (refusal) return refusal;
  }
  return check_labels(facts);
}

std::optional<Refusal> check_generation(Generation generation) {
  if (generation.term <= kTermMax && generation.number <= kTermMax) return std::nullopt;
  return bad_request("generation " + to_string(generation) + " was never given; restart the agent");
}

std::optional<Refusal> check_run(const std::string& run_id, const Config& config) {
  if (run_id == config.run_id) return std::nullopt;
  return Refusal{RefuseReason::WrongRun, "run id '" + run_id + "' is not served here, '" +
                                             config.run_id +
                                             "' is; give all nodes the same --rdzv-id"};
}

Refusal closed(const Config& config, Outcome outcome) {
  return {RefuseReason::Closed, "job '" + config.run_id + "' is over (" + to_string(outcome) +
                                    "); start its rendezvous again, or use another --rdzv-id"};
}

Refusal duplicate_node(const NodeId& node, Incarnation living, Incarnation newcomer) {
  return {RefuseReason::DuplicateNode,
          "node '" + node.value + "' is already here as incarnation " +
              std::to_string(living.value) + "; incarnation " + std::to_string(newcomer.value) +
              " may take its place when that one's connection has closed; stop one of them"};
}

Refusal duplicate_rank(GroupRank rank, const NodeId& holder, const NodeId& newcomer) {
  return {RefuseReason::DuplicateRank, "node rank " + std::to_string(rank.value) + " of '" +
                                           newcomer.value + "' is taken by '" + holder.value +
                                           "'; give each node its own --node-rank"};
}

Refusal superseded(const NodeId& node) {
  return {RefuseReason::Superseded, "a newer agent has taken the place of this one on node '" +
                                        node.value + "'; this one ends"};
}

Refusal has_left(const NodeId& node) {
  return {RefuseReason::Superseded,
          "this agent of node '" + node.value + "' has left the job; start a new one to return"};
}

Refusal stale_leave(Generation named, Generation current) {
  return {RefuseReason::StaleGeneration, "generation " + to_string(named) +
                                             " is over; the current one is " + to_string(current) +
                                             "; join again"};
}

Refusal join_timed_out(const Config& config, const std::vector<NodeId>& came) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(config.join_timeout);
  return {RefuseReason::JoinTimedOut,
          std::to_string(came.size()) + " of at least " + std::to_string(config.min_nodes) +
              " nodes came within " + std::to_string(seconds.count()) + " s: " + list_names(came) +
              "; start the missing ones, or lower --nnodes, or raise the join time-out"};
}

Refusal unknown_node(const NodeId& node, const std::vector<NodeId>& known) {
  return {RefuseReason::UnknownNode,
          "no node '" + node.value + "' in this job; here are: " + list_names(known)};
}

Refusal too_many_nodes() {
  return bad_request("more nodes than one rendezvous serves; start several jobs");
}

Refusal too_many_deferred() {
  return {RefuseReason::StaleGeneration,
          "the rendezvous has just started and holds as many values as it can; publish again"};
}

std::string list_names(const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return "nobody";
  std::string listed;
  const std::size_t shown = std::min(nodes.size(), kNamesListedMax);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) listed += ", ";
    listed += nodes[i].value;
  }
  if (shown < nodes.size()) listed += " and " + std::to_string(nodes.size() - shown) + " more";
  return listed;
}

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Succeeded:
      return "succeeded";
    case Outcome::Failed:
      return "failed";
    case Outcome::Stopped:
      return "stopped";
    case Outcome::NoProgress:
      return "no progress";
  }
  return "unknown";
}

}  // namespace lrun::rendezvous
