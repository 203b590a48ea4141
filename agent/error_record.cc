#include "agent/error_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/fd.h"

namespace lrun::agent {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::system_clock;

// Seconds since 1970 beyond the year 9999 are no time of day.
constexpr double kSecondsMax = 253'402'300'800.0;

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const Json* value) {
  return value && value->is_string() ? value->get<std::string>() : "";
}

// A number, or a number as text.
std::optional<Clock::time_point> time_of(const Json* value) {
  double seconds = -1;
  if (value && value->is_number()) seconds = value->get<double>();
  if (value && value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (parsed.ec != std::errc{}) return std::nullopt;
  }
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kSecondsMax) return std::nullopt;
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace

ErrorRecord parse_error_record(std::string_view text) {
  if (text.size() > kErrorRecordBytesMax)
    return {.complaint = "the error record is larger than 64 KiB"};
  if (text.empty()) return {.complaint = "the error record is empty"};
  const Json record = Json::parse(text.begin(), text.end(), nullptr, false);
  if (record.is_discarded()) return {.complaint = "the error record is not valid JSON"};
  const Json* message = member(record, "message");
  if (message && message->is_string()) {
    return {.message = message->get<std::string>(),
            .written_at = time_of(member(record, "timestamp"))};
  }
  if (message && message->is_object()) {
    const Json* extra = member(*message, "extraInfo");
    return {.message = text_of(member(*message, "message")),
            .call_stack = extra ? text_of(member(*extra, "py_callstack")) : "",
            .written_at = extra ? time_of(member(*extra, "timestamp")) : std::nullopt};
  }
  return {.complaint = "the error record has no message"};
}

std::optional<ErrorRecord> read_error_record(const std::string& path) {
  if (path.empty()) return std::nullopt;
  // A worker may have put anything there: a pipe must not make the agent wait.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.get(), &facts) != 0) return std::nullopt;
  if (!S_ISREG(facts.st_mode)) return ErrorRecord{.complaint = "the error record is not a file"};
  std::string text(kErrorRecordBytesMax + 1, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return parse_error_record(text);
}

}  // namespace lrun::agent
