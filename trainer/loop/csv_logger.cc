#include "trainer/loop/csv_logger.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <utility>

namespace lrun::loop {
namespace {

// The shortest text that reads back to the same double.
std::string spell(double value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

}  // namespace

CsvLogger::CsvLogger(std::filesystem::path path, std::vector<std::string> columns)
    : file_(std::move(path)), columns_(std::move(columns)) {}

CsvLogger::~CsvLogger() {
  try {
    flush();
  } catch (const std::exception&) {
    // The same failure was or will be reported by the next save; a destructor has nobody to tell.
  }
}

void CsvLogger::start() {
  file_.open_at(0);
  std::string header = "epoch,step";
  for (const std::string& column : columns_) header += "," + column;
  file_.append(header + "\n");
}

std::string CsvLogger::resume(const std::string& position) {
  if (file_.open_at(std::stoll(position))) return {};
  const std::string sentence =
      file_.path().string() + " is shorter than when the checkpoint was saved; rows are missing";
  if (file_.length() == 0) start();
  return sentence;
}

void CsvLogger::log(const LogRow& row) {
  if (row.step != step_) flush();
  step_ = row.step;
  epoch_ = row.epoch;
  for (const auto& [name, value] : row.values) values_[name] = value;
}

std::string CsvLogger::position() {
  flush();
  return std::to_string(file_.sync());
}

void CsvLogger::flush() {
  if (values_.empty()) return;
  std::string line = std::to_string(epoch_) + "," + std::to_string(step_);
  for (const std::string& column : columns_) {
    const auto found = values_.find(column);
    line += ',';
    if (found != values_.end()) line += spell(found->second);
  }
  values_.clear();
  file_.append(line + "\n");
}

}  // namespace lrun::loop
