#include "tests/trainer/loop/event_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "trainer/loop/event_record.h"

namespace lrun::loop {
namespace {

std::string_view take(std::string_view* bytes, std::size_t count) {
  if (bytes->size() < count) throw std::runtime_error("the file ends inside a record");
  const std::string_view taken = bytes->substr(0, count);
  bytes->remove_prefix(count);
  return taken;
}

template <class Word>
Word word_of(std::string_view bytes) {
  Word word{};
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::uint64_t take_varint(std::string_view* bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(bytes, 1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint is too long");
}

struct Field {
  std::uint64_t number = 0;
  std::string_view bytes;  // of a length-delimited or fixed field
  std::uint64_t varint = 0;
};

Field take_field(std::string_view* message) {
  const std::uint64_t key = take_varint(message);
  Field field{.number = key >> 3, .bytes = {}, .varint = 0};
  const std::uint64_t wire_type = key & 7U;
  if (wire_type == 0) field.varint = take_varint(message);
  if (wire_type == 1) field.bytes = take(message, 8);
  if (wire_type == 2) field.bytes = take(message, take_varint(message));
  if (wire_type == 5) field.bytes = take(message, 4);
  return field;
}

void read_value(std::string_view value, LoggedEvent* event) {
  std::string tag;
  float number = 0;
  while (!value.empty()) {
    const Field field = take_field(&value);
    if (field.number == 1) tag = field.bytes;
    if (field.number == 2) number = word_of<float>(field.bytes);
  }
  event->scalars[tag] = number;
}

LoggedEvent read_event(std::string_view message) {
  LoggedEvent event;
  while (!message.empty()) {
    const Field field = take_field(&message);
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.varint);
    if (field.number == 3) event.file_version = field.bytes;
    if (field.number != 5) continue;
    for (std::string_view summary = field.bytes; !summary.empty();) {
      read_value(take_field(&summary).bytes, &event);
    }
  }
  return event;
}

}  // namespace

std::set<std::string> LoggedEvent::tags() const {
  std::set<std::string> names;
  for (const auto& [tag, number] : scalars) names.insert(tag);
  return names;
}

std::optional<float> LoggedEvent::value(const std::string& tag) const {
  const auto found = scalars.find(tag);
  return found == scalars.end() ? std::nullopt : std::optional(found->second);
}

std::vector<LoggedEvent> read_event_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::vector<LoggedEvent> events;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view length = take(&rest, 8);
    if (word_of<std::uint32_t>(take(&rest, 4)) != masked_crc32c(length)) {
      throw std::runtime_error("wrong checksum of a length");
    }
    const std::string_view message = take(&rest, word_of<std::uint64_t>(length));
    if (word_of<std::uint32_t>(take(&rest, 4)) != masked_crc32c(message)) {
      throw std::runtime_error("wrong checksum of an event");
    }
    events.push_back(read_event(message));
  }
  return events;
}

}  // namespace lrun::loop
