#include "trainer/loop/throughput.h"

#include <chrono>

namespace lrun::loop {
namespace {

// Long enough to smooth single steps, short enough to show a straggler.
constexpr Duration kWindow = std::chrono::seconds(5);
constexpr std::size_t kMarksMax = 512;

}  // namespace

void Throughput::add(Instant now, std::int64_t samples_in_all) {
  marks_.push_back({now, samples_in_all});
  while (marks_.size() > 2 && (marks_.size() > kMarksMax || now - marks_.front().at > kWindow)) {
    marks_.pop_front();
  }
}

double Throughput::samples_per_second() const {
  if (marks_.size() < 2) return 0;
  const std::chrono::duration<double> seconds = marks_.back().at - marks_.front().at;
  if (seconds.count() <= 0) return 0;
  return static_cast<double>(marks_.back().samples - marks_.front().samples) / seconds.count();
}

}  // namespace lrun::loop
