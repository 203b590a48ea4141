// A world whose ranks are forked processes, so that they can be stopped and killed. For tests.
//
// Construct it while the test has a single thread. All processes are killed and reaped by the
// destructor, whatever the test did.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/trainer/comm/world.h"

namespace lrun::comm {

// What an operation ended with, as text: "PeerLost 2: …", "Aborted: …", "" for success.
std::string outcome_of(const std::function<void()>& operation);

class ProcessWorld {
 public:
  // Each process connects, says so, and ends with the text that `program` returns.
  ProcessWorld(const World& world, const std::function<std::string(Comm&)>& program);
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;

  // Waits until every rank is connected and has begun its program. False after 60 s.
  bool wait_until_running();
  void send_signal(GlobalRank rank, int signal);
  // The text that the rank's program returned; waits for it for at most 60 s.
  std::string outcome(GlobalRank rank);

 private:
  struct Child {
    pid_t pid = -1;
    Fd output;
  };
  [[noreturn]] void be_rank(const World& world, GlobalRank rank, Fd output,
                            const std::function<std::string(Comm&)>& program);

  std::filesystem::path folder_;
  std::vector<Child> children_;
};

}  // namespace lrun::comm
