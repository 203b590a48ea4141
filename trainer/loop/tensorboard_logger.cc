#include "trainer/loop/tensorboard_logger.h"

#include <chrono>

#include "trainer/loop/event_record.h"

namespace lrun::loop {
namespace {

// One name for all restarts of a run: the file is cut back and continued, where a second file would
// show some steps twice. TensorBoard looks for "tfevents" in the name.
constexpr const char* kFileName = "events.out.tfevents.lrun";

double wall_time() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_epoch).count();
}

}  // namespace

TensorBoardLogger::TensorBoardLogger(const std::filesystem::path& folder)
    : file_(folder / kFileName) {}

void TensorBoardLogger::start() {
  file_.open_at(0);
  file_.append(event_record(version_event(wall_time())));
}

std::string TensorBoardLogger::resume(const std::string& position) {
  if (file_.open_at(std::stoll(position))) return {};
  // What is there may end inside a record, so nothing can follow it.
  start();
  return file_.path().string() +
         " is shorter than when the checkpoint was saved; it begins anew at this step";
}

void TensorBoardLogger::log(const LogRow& row) {
  std::vector<std::pair<std::string, double>> scalars = row.values;
  scalars.insert(scalars.end(), row.timings.begin(), row.timings.end());
  scalars.emplace_back("epoch", static_cast<double>(row.epoch));
  file_.append(event_record(scalar_event(wall_time(), row.step, scalars)));
}

std::string TensorBoardLogger::position() { return std::to_string(file_.sync()); }

}  // namespace lrun::loop
