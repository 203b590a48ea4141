// One JSON object of scalars, read from an untrusted line.
//
// Owns the tolerance (unknown keys and nested values are skipped) and the bounds (depth, no
// recursion, no exception). Refuses to know messages. Used by channel.cc only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "proto/ids.h"

namespace lrun::flat_json {

// Nesting beyond this is refused; what nests at all is skipped.
inline constexpr int kDepthMax = 16;

// A nested array or object: its content is not kept.
struct Nested {};
// `null` counts as absent, so it is not kept either.
using Scalar = std::variant<Nested, bool, std::int64_t, std::uint64_t, double, std::string>;
using Object = std::map<std::string, Scalar, std::less<>>;

// One sentence, safe to print.
struct Mistake {
  std::string sentence;
};

// Never throws. Refused: bad JSON or UTF-8, no object, a key given twice, too deep.
std::variant<Object, Mistake> parse(std::string_view line);

// Takes typed values out of an object and keeps the first mistake; after one, values are defaults.
class FieldReader {
 public:
  explicit FieldReader(Object object) : object_(std::move(object)) {}

  bool has(std::string_view key) const { return object_.find(key) != object_.end(); }
  // The key must be there, the value a whole number in [least, most].
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);
  double non_negative(std::string_view key);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::size_t bytes_max);
  // Text of the form term.number.
  Generation generation(std::string_view key);

  void refuse(std::string_view key, std::string_view accepted);
  const std::optional<std::string>& mistake() const { return mistake_; }

 private:
  const Scalar* find(std::string_view key) const;

  Object object_;
  std::optional<std::string> mistake_;
};

}  // namespace lrun::flat_json
