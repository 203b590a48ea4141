#include "agent/service_outage.h"

#include <chrono>
#include <string>

#include "base/log.h"

namespace lrun::agent {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void ServiceOutage::failed(Instant now, const std::string& sentence) {
  if (failures_++ == 0) {
    since_ = now;
  } else if (now - logged_at_ < kOutageLogInterval) {
    return;
  }
  logged_at_ = now;
  log::warn(
      "service_unreachable",
      {{"reason", sentence}, {"failures", failures_}, {"for_seconds", seconds(now - since_)}});
}

void ServiceOutage::answered(Instant now) {
  if (failures_ == 0) return;
  log::info("service_reachable",
            {{"failures", failures_}, {"after_seconds", seconds(now - since_)}});
  failures_ = 0;
}

}  // namespace lrun::agent
