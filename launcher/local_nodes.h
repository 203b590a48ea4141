// `lrun --standalone --nnodes N`: N agent processes of this machine around one service.
//
// Owns the agent processes: starts them, starts one again that was killed (as a scheduler would),
// forwards signals, and ends with the job. The service lives here, so this process has no workers.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/metrics_server.h"
#include "launcher/place.h"
#include "launcher/run_options.h"
#include "launcher/service_host.h"
#include "launcher/signals.h"

namespace prometheus {
class Registry;
}

namespace lrun::launcher {

class LocalNodes {
 public:
  LocalNodes(const RunCommand& command, Place place);
  ~LocalNodes();
  LocalNodes(const LocalNodes&) = delete;
  LocalNodes& operator=(const LocalNodes&) = delete;

  // Until every agent has ended. Returns the exit code.
  int run();

 private:
  // One agent process, watched through its pidfd.
  struct Node {
    pid_t pid = -1;
    int starts = 0;
    bool is_returning = false;  // was killed and is about to be started again
    std::unique_ptr<boost::asio::posix::stream_descriptor> ended;
    std::unique_ptr<boost::asio::steady_timer> restart_timer;
  };

  void start(Node& node);
  void watch(Node& node);
  void on_end(Node& node, int status);
  void on_signal(int signal_number);
  bool is_over() const;
  std::vector<std::string> agent_words() const;

  RunCommand command_;
  Place place_;
  boost::asio::io_context loop_{1};
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<ServiceHost> host_;
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Signals> signals_;
  std::vector<Node> nodes_;
  std::optional<int> signal_;
  int worst_exit_code_ = 0;
};

}  // namespace lrun::launcher
