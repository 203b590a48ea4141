// The port for people and monitoring: /metrics, /healthz, /readyz over HTTP/1.1.
//
// Owns the listener, its limits and the Host check. Refuses to know what is measured: it serializes
// a registry and asks two functions. Thread: the loop. GET and HEAD only; nothing here changes
// state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}
namespace prometheus {
class Registry;
}

namespace lrun::launcher {

// Whether a probe succeeds, with one line of reason either way.
struct Health {
  bool is_ok = true;
  std::string reason;
};

class MetricsServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;                             // 0: a free one
    std::vector<std::string> accepted_hosts;  // beside loopback names and `address`
  };
  // `refresh` runs before each /metrics, to bring gauges up to date. Throws std::runtime_error with
  // one line (address, port, the option to change) when the port cannot be had.
  MetricsServer(boost::asio::io_context& loop, const Options& options,
                prometheus::Registry& registry, std::function<void()> refresh,
                std::function<Health()> health, std::function<Health()> readiness);
  ~MetricsServer();

  int port() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lrun::launcher
