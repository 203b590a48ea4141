// The event file that `tensorboard --logdir RUN_FOLDER` shows, timings included.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/loop/append_file.h"
#include "trainer/loop/logger.h"

namespace lrun::loop {

class TensorBoardLogger final : public Logger {
 public:
  explicit TensorBoardLogger(const std::filesystem::path& folder);

  std::string name() const override { return "tensorboard"; }
  void start() override;
  std::string resume(const std::string& position) override;
  void log(const LogRow& row) override;
  std::string position() override;

 private:
  AppendFile file_;
};

}  // namespace lrun::loop
