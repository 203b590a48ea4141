#include "proto/flat_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace lrun::flat_json {
namespace {

using Json = nlohmann::json;

// Receives the parser's events: a tree is never built, so neither memory nor stack can grow with
// the nesting.
class Collector : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return end_value(std::nullopt); }
  bool boolean(bool value) override { return end_value(Scalar{value}); }
  bool number_integer(number_integer_t value) override { return end_value(Scalar{value}); }
  bool number_unsigned(number_unsigned_t value) override { return end_value(Scalar{value}); }
  bool number_float(number_float_t value, const string_t&) override {
    return end_value(Scalar{value});
  }
  bool string(string_t& value) override { return end_value(Scalar{std::move(value)}); }
  bool binary(binary_t&) override { return fail("it holds binary values"); }
  bool start_object(std::size_t) override { return descend(true); }
  bool end_object() override { return ascend(); }
  bool start_array(std::size_t) override { return descend(false); }
  bool end_array() override { return ascend(); }

  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    if (!seen_.emplace(name, Nested{}).second) return fail("it has a key twice");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return fail("it is not valid JSON");
  }

  std::variant<Object, Mistake> result() && {
    if (mistake_) return Mistake{"the line is not a message: " + *mistake_};
    return std::move(object_);
  }

 private:
  bool fail(std::string why) {
    if (!mistake_) mistake_ = std::move(why);
    return false;
  }

  bool end_value(std::optional<Scalar> value) {
    if (depth_ == 0) return fail("it is not a JSON object");
    if (depth_ == 1 && value) object_.insert_or_assign(std::move(key_), *std::move(value));
    return true;
  }

  bool descend(bool into_object) {
    if (depth_ == 0 && !into_object) return fail("it is not a JSON object");
    if (depth_ == 1) object_.insert_or_assign(std::move(key_), Scalar{Nested{}});
    return ++depth_ <= kDepthMax || fail("it nests too deeply");
  }

  bool ascend() {
    --depth_;
    return true;
  }

  Object object_;
  Object seen_;  // keys met, those of null values included
  std::string key_;
  int depth_ = 0;
  std::optional<std::string> mistake_;
};

std::optional<std::int64_t> whole(const Scalar& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* number = std::get_if<std::uint64_t>(&value);
  if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<double> real(const Scalar& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<std::uint64_t> digits(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::variant<Object, Mistake> parse(std::string_view line) {
  // The parser would take a NUL byte for the end of its input.
  if (line.find('\0') != std::string_view::npos) {
    return Mistake{"the line is not a message: it holds a NUL byte"};
  }
  Collector collector;
  Json::sax_parse(line.begin(), line.end(), &collector);
  return std::move(collector).result();
}

const Scalar* FieldReader::find(std::string_view key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &found->second;
}

std::int64_t FieldReader::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const Scalar* value = find(key);
  const std::optional<std::int64_t> number = value ? whole(*value) : std::nullopt;
  if (number && *number >= least && *number <= most) return *number;
  refuse(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

double FieldReader::non_negative(std::string_view key) {
  const Scalar* value = find(key);
  const std::optional<double> number = value ? real(*value) : std::nullopt;
  if (number && std::isfinite(*number) && *number >= 0) return *number;
  refuse(key, "a number of at least 0");
  return 0;
}

bool FieldReader::flag(std::string_view key, bool fallback) {
  const Scalar* value = find(key);
  if (!value) return fallback;
  if (const bool* set = std::get_if<bool>(value)) return *set;
  refuse(key, "true or false");
  return fallback;
}

std::string FieldReader::text(std::string_view key, std::size_t bytes_max) {
  const Scalar* value = find(key);
  const std::string* found = value ? std::get_if<std::string>(value) : nullptr;
  if (found && found->size() <= bytes_max) return *found;
  refuse(key, "text of at most " + std::to_string(bytes_max) + " bytes");
  return {};
}

Generation FieldReader::generation(std::string_view key) {
  const Scalar* value = find(key);
  if (const std::string* found = value ? std::get_if<std::string>(value) : nullptr) {
    const std::string_view written = *found;
    const std::size_t dot = written.find('.');
    if (dot != std::string_view::npos) {
      const auto term = digits(written.substr(0, dot));
      const auto number = digits(written.substr(dot + 1));
      if (term && number) return {.term = *term, .number = *number};
    }
  }
  refuse(key, "term.number as text, such as \"17.3\"");
  return {};
}

void FieldReader::refuse(std::string_view key, std::string_view accepted) {
  if (mistake_) return;
  mistake_ = "the message's \"" + std::string(key) + "\" must be " + std::string(accepted);
}

}  // namespace lrun::flat_json
