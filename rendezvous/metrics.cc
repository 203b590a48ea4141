#include "rendezvous/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <string>

#include "rendezvous/words.h"

namespace lrun::rendezvous {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::array kPhases = {Phase::Recovering, Phase::Forming, Phase::LastCall, Phase::Active,
                                Phase::Closed};
constexpr std::array<std::string_view, 4> kRoles = {"participant", "waiting", "spare", "draining"};
constexpr std::array kEvidence = {Evidence::Gone, Evidence::Silent, Evidence::Left,
                                  Evidence::Drained};
constexpr std::array kReasons = {GenerationReason::Start,        GenerationReason::NodeJoined,
                                 GenerationReason::NodeLost,     GenerationReason::Drained,
                                 GenerationReason::WorkerFailed, GenerationReason::Stalled};
constexpr std::array kRefusals = {
    RefuseReason::Closed,     RefuseReason::DuplicateNode,   RefuseReason::DuplicateRank,
    RefuseReason::Superseded, RefuseReason::StaleGeneration, RefuseReason::JoinTimedOut,
    RefuseReason::Full,       RefuseReason::BadRequest,      RefuseReason::UnknownNode,
    RefuseReason::WrongRun};
constexpr std::array<std::string_view, 9> kMethods = {
    "Join", "Watch", "Heartbeat", "Leave", "Publish", "Lookup", "GetStatus", "Drain", "Stop"};
// What a call of ours can end with; see proto/rendezvous.proto.
constexpr std::array<std::string_view, 10> kCodes = {"OK",
                                                     "CANCELLED",
                                                     "INVALID_ARGUMENT",
                                                     "DEADLINE_EXCEEDED",
                                                     "NOT_FOUND",
                                                     "ALREADY_EXISTS",
                                                     "PERMISSION_DENIED",
                                                     "RESOURCE_EXHAUSTED",
                                                     "FAILED_PRECONDITION",
                                                     "ABORTED"};

const Histogram::BucketBoundaries kFormBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                  2.5,   5,    10,    30,   60,  120,  300, 600};
const Histogram::BucketBoundaries kRequestBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                     0.05,   0.1,   0.25,   0.5,   1,    5};

Family<Gauge>& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Counter>& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Histogram>& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

std::string text(std::string_view word) { return std::string(word); }
double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

struct Metrics::Impl {
  explicit Impl(prometheus::Registry& registry)
      : phase(gauges(registry, "lrun_rendezvous_phase", "1 for the phase of the rendezvous.")),
        nodes(gauges(registry, "lrun_rendezvous_nodes", "Nodes by role.")),
        nodes_min(gauges(registry, "lrun_rendezvous_nodes_min", "Least nodes of a group.").Add({})),
        nodes_max(gauges(registry, "lrun_rendezvous_nodes_max", "Most nodes of a group.").Add({})),
        world_size(
            gauges(registry, "lrun_rendezvous_world_size", "Workers of the generation.").Add({})),
        generations(counters(registry, "lrun_rendezvous_generations_total",
                             "Generations published, by reason.")),
        form_seconds(histograms(registry, "lrun_rendezvous_form_seconds",
                                "From the end of the old group to the new one's publication.")
                         .Add({}, kFormBuckets)),
        departures(counters(registry, "lrun_rendezvous_departures_total",
                            "Nodes that went, by evidence.")),
        refusals(counters(registry, "lrun_rendezvous_refusals_total", "Calls refused, by reason.")),
        budget_left(gauges(registry, "lrun_rendezvous_restart_budget_left",
                           "Restarts that the job may still use.")
                        .Add({})),
        budget_max(gauges(registry, "lrun_rendezvous_restart_budget_max",
                          "Restarts that the job was given.")
                       .Add({})),
        leader(
            gauges(registry, "lrun_rendezvous_leader", "1 on the instance that serves.").Add({})),
        lag(gauges(registry, "lrun_rendezvous_loop_lag_seconds",
                   "How late the last deadline was served; leases are extended by it.")
                .Add({})),
        requests(counters(registry, "lrun_rpc_requests_total",
                          "Calls answered, by method and gRPC status code.")),
        request_seconds(histograms(registry, "lrun_rpc_seconds",
                                   "Time to answer, by method; held calls are not counted.")) {
    for (const Phase each : kPhases) phase.Add({{"phase", text(word(each))}});
    for (const auto role : kRoles) nodes.Add({{"role", text(role)}});
    for (const auto each : kReasons) generations.Add({{"reason", text(word(each))}});
    for (const auto each : kEvidence) departures.Add({{"evidence", text(word(each))}});
    for (const auto each : kRefusals) refusals.Add({{"reason", text(word(each))}});
    for (const auto method : kMethods) {
      for (const auto code : kCodes) {
        requests.Add({{"method", text(method)}, {"code", text(code)}});
      }
      const bool is_held = method == "Join" || method == "Watch" || method == "Lookup";
      if (!is_held) request_seconds.Add({{"method", text(method)}}, kRequestBuckets);
    }
  }

  void show_nodes(const std::map<std::string_view, int>& by_role) {
    for (const auto role : kRoles) {
      const auto found = by_role.find(role);
      nodes.Add({{"role", text(role)}}).Set(found == by_role.end() ? 0 : found->second);
    }
  }

  Family<Gauge>& phase;
  Family<Gauge>& nodes;
  Gauge& nodes_min;
  Gauge& nodes_max;
  Gauge& world_size;
  Family<Counter>& generations;
  Histogram& form_seconds;
  Family<Counter>& departures;
  Family<Counter>& refusals;
  Gauge& budget_left;
  Gauge& budget_max;
  Gauge& leader;
  Gauge& lag;
  Family<Counter>& requests;
  Family<Histogram>& request_seconds;
};

Metrics::Metrics(prometheus::Registry& registry) : impl_(std::make_unique<Impl>(registry)) {}
Metrics::~Metrics() = default;

void Metrics::show(const Status& status) {
  for (const Phase each : kPhases) {
    impl_->phase.Add({{"phase", text(word(each))}}).Set(each == status.phase ? 1 : 0);
  }
  std::map<std::string_view, int> by_role;
  for (const NodeStatus& node : status.nodes) {
    ++by_role[word(node.role)];
    if (node.draining) ++by_role["draining"];
  }
  impl_->show_nodes(by_role);
  impl_->nodes_min.Set(status.config.min_nodes);
  impl_->nodes_max.Set(status.config.max_nodes);
  impl_->world_size.Set(status.world_size);
  impl_->budget_max.Set(status.config.max_restarts);
  impl_->budget_left.Set(std::max(0, status.config.max_restarts - status.restarts_spent));
  impl_->leader.Set(1);
}

void Metrics::show_nothing() {
  impl_->show_nodes({});
  impl_->world_size.Set(0);
  impl_->leader.Set(0);
}

void Metrics::count(const GenerationPublished& published) {
  impl_->generations.Add({{"reason", text(word(published.reason))}}).Increment();
  impl_->form_seconds.Observe(seconds(published.formed_in));
}

void Metrics::count(const NodeDeparted& departed) {
  impl_->departures.Add({{"evidence", text(word(departed.evidence))}}).Increment();
}

void Metrics::count(const CallRefused& refused) {
  impl_->refusals.Add({{"reason", text(word(refused.refusal.reason))}}).Increment();
}

void Metrics::show_lag(Duration lag) { impl_->lag.Set(seconds(lag)); }

void Metrics::count_request(std::string_view method, std::string_view code) {
  impl_->requests.Add({{"method", text(method)}, {"code", text(code)}}).Increment();
}

void Metrics::observe_request(std::string_view method, Duration took) {
  impl_->request_seconds.Add({{"method", text(method)}}, kRequestBuckets).Observe(seconds(took));
}

}  // namespace lrun::rendezvous
