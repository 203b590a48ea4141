// metrics.csv: one row per logged step, fixed columns, only values that are the same in every run.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/loop/append_file.h"
#include "trainer/loop/logger.h"

namespace lrun::loop {

class CsvLogger final : public Logger {
 public:
  // Columns after `epoch` and `step`; values of other names are left out.
  CsvLogger(std::filesystem::path path, std::vector<std::string> columns);
  ~CsvLogger() override;

  std::string name() const override { return "csv"; }
  void start() override;
  std::string resume(const std::string& position) override;
  void log(const LogRow& row) override;
  std::string position() override;

 private:
  void flush();

  AppendFile file_;
  std::vector<std::string> columns_;
  // The row being collected: it is written when another step begins or a position is asked for.
  std::int64_t step_ = -1;
  std::int64_t epoch_ = 0;
  std::map<std::string, double> values_;
};

}  // namespace lrun::loop
