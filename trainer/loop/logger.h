// Where metrics go.
//
// A logger writes one file in the run folder, on rank 0 only, and can be cut back to an earlier
// position: a resumed run repeats no step and misses none. Compute thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lrun::loop {

// Values of one optimizer step. `timings` (samples per second, …) differ from run to run, so they
// stay out of logs that can be compared.
struct LogRow {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;
  std::vector<std::pair<std::string, double>> timings;
};

class Logger {
 public:
  virtual ~Logger() = default;
  // Key of its position in checkpoints.
  virtual std::string name() const = 0;
  // Begins anew, dropping what an earlier run left in the file.
  virtual void start() = 0;
  // Goes on from a position that `position()` gave. Returns a sentence when the file no longer
  // reaches it (then it is begun anew or continued as it is), else nothing.
  virtual std::string resume(const std::string& position) = 0;
  // Rows come with ascending steps; several rows of one step are one.
  virtual void log(const LogRow& row) = 0;
  // Makes everything logged so far durable and says where the file ends.
  virtual std::string position() = 0;
};

}  // namespace lrun::loop
