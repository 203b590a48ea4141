// The loggers of one run, on rank 0; none elsewhere. Compute thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/loop/logger.h"

namespace lrun::loop {

class RunLoggers {
 public:
  void add(std::unique_ptr<Logger> logger) { loggers_.push_back(std::move(logger)); }
  // Begins anew, or goes on from the positions of a checkpoint. `warn`: a log that no longer fits.
  void start();
  void resume(const std::map<std::string, std::string>& positions,
              const std::function<void(const std::string&)>& warn);
  void log(const LogRow& row);
  // By name of the logger; everything logged so far is durable afterwards.
  std::map<std::string, std::string> positions();

 private:
  std::vector<std::unique_ptr<Logger>> loggers_;
};

}  // namespace lrun::loop
