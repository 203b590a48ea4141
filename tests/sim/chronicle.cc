#include "tests/sim/chronicle.h"

#include <array>
#include <cstdio>

namespace lrun::sim {
namespace {

// The first few say what is wrong; a broken world would fill memory with the rest.
constexpr std::size_t kViolationsMax = 20;

std::string stamp(Instant now) {
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "[%4lld.%06lld] ", static_cast<long long>(us / 1'000'000),
                static_cast<long long>(us % 1'000'000));
  return text.data();
}

}  // namespace

// FNV-1a over the bytes.
void Chronicle::mix(std::string_view text) {
  for (const char byte : text) {
    hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
}

void Chronicle::whisper(Instant now, std::string_view who, std::string_view what) {
  hash_ = (hash_ ^ static_cast<std::uint64_t>(now.time_since_epoch().count())) * 0x100000001b3U;
  mix(who);
  mix(what);
}

void Chronicle::note(Instant now, std::string_view who, std::string_view what) {
  whisper(now, who, what);
  if (!keeps_text_) return;
  std::string line = stamp(now);
  line.append(who).append(": ").append(what);
  lines_.push_back(std::move(line));
}

void Chronicle::violation(Instant now, std::string_view what) {
  if (violations_.size() >= kViolationsMax) return;
  note(now, "VIOLATION", what);
  violations_.push_back(stamp(now).append(what));
}

}  // namespace lrun::sim
