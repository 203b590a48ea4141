// The rendezvous as numbers: lrun_rendezvous_* and lrun_rpc_* (docs/metrics.md).
//
// Owns the families and their closed label sets, all present with 0 from the start. Refuses to
// decide anything. Fed by rendezvous/service and rendezvous/server on the loop; the registry may be
// read from any thread.
#pragma once

#include <memory>
#include <string_view>

#include "rendezvous/events.h"

namespace prometheus {
class Registry;
}

namespace lrun::rendezvous {

class Metrics {
 public:
  // The registry must outlive this.
  explicit Metrics(prometheus::Registry& registry);
  ~Metrics();

  // Gauges: phase, nodes by role, limits, world size, budget. leader becomes 1.
  void show(const Status& status);
  // The service no longer serves: leader becomes 0, as do nodes and world size.
  void show_nothing();

  void count(const GenerationPublished& published);
  void count(const NodeDeparted& departed);
  void count(const CallRefused& refused);
  void show_lag(Duration lag);

  // `method` as in the .proto ("Join"), `code` as gRPC spells it ("OK", "INVALID_ARGUMENT").
  void count_request(std::string_view method, std::string_view code);
  // Not for held calls: those wait on purpose.
  void observe_request(std::string_view method, Duration took);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrun::rendezvous
