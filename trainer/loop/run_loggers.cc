#include "trainer/loop/run_loggers.h"

namespace lrun::loop {

void RunLoggers::start() {
  for (const auto& logger : loggers_) logger->start();
}

void RunLoggers::resume(const std::map<std::string, std::string>& positions,
                        const std::function<void(const std::string&)>& warn) {
  for (const auto& logger : loggers_) {
    const auto found = positions.find(logger->name());
    if (found == positions.end()) {
      logger->start();  // it was switched off when the checkpoint was saved
      continue;
    }
    const std::string sentence = logger->resume(found->second);
    if (!sentence.empty()) warn(sentence);
  }
}

void RunLoggers::log(const LogRow& row) {
  for (const auto& logger : loggers_) logger->log(row);
}

std::map<std::string, std::string> RunLoggers::positions() {
  std::map<std::string, std::string> positions;
  for (const auto& logger : loggers_) positions[logger->name()] = logger->position();
  return positions;
}

}  // namespace lrun::loop
