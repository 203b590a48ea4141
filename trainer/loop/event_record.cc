#include "trainer/loop/event_record.h"

#include <array>
#include <bit>

namespace lrun::loop {
namespace {

constexpr std::uint32_t kReversedPolynomial = 0x82f63b78U;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kReversedPolynomial : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

// Protobuf wire types.
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kLengthDelimited = 2;
constexpr std::uint32_t kFixed32 = 5;

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof word; ++i) {
    bytes.push_back(static_cast<char>((word >> (8 * i)) & 0xff));
  }
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string tag(std::uint32_t field, std::uint32_t wire_type) {
  return varint((field << 3) | wire_type);
}

std::string text_field(std::uint32_t field, std::string_view text) {
  return tag(field, kLengthDelimited) + varint(text.size()) + std::string(text);
}
std::string double_field(std::uint32_t field, double value) {
  return tag(field, kFixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(std::uint32_t field, float value) {
  return tag(field, kFixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}

// Field numbers of event.proto and summary.proto.
constexpr std::uint32_t kEventWallTime = 1;
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kEventFileVersion = 3;
constexpr std::uint32_t kEventSummary = 5;
constexpr std::uint32_t kSummaryValue = 1;
constexpr std::uint32_t kValueTag = 1;
constexpr std::uint32_t kValueSimple = 2;

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string event_record(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(event) +
         little_endian(masked_crc32c(event));
}

std::string version_event(double wall_time) {
  return double_field(kEventWallTime, wall_time) + text_field(kEventFileVersion, "brain.Event:2");
}

std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    summary += text_field(kSummaryValue, text_field(kValueTag, name) +
                                             float_field(kValueSimple, static_cast<float>(value)));
  }
  return double_field(kEventWallTime, wall_time) + tag(kEventStep, kVarint) +
         varint(static_cast<std::uint64_t>(step)) + text_field(kEventSummary, summary);
}

}  // namespace lrun::loop
