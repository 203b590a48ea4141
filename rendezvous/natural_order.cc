#include "rendezvous/natural_order.h"

#include <compare>

namespace lrun::rendezvous {
namespace {

bool is_digit(char symbol) { return symbol >= '0' && symbol <= '9'; }

// Takes the run of digits off the front, without leading zeros: of two such runs the longer is the
// greater number, so no value can overflow.
std::string_view take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::string_view number = text.substr(0, length);
  text.remove_prefix(length);
  while (!number.empty() && number.front() == '0') number.remove_prefix(1);
  return number;
}

std::strong_ordering compare_numbers(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return left.size() <=> right.size();
  return left.compare(right) <=> 0;
}

std::strong_ordering compare_naturally(std::string_view left, std::string_view right) {
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const auto order = compare_numbers(take_number(left), take_number(right));
      if (order != 0) return order;
      continue;
    }
    if (left.front() != right.front()) {
      return static_cast<unsigned char>(left.front()) <=> static_cast<unsigned char>(right.front());
    }
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  return left.size() <=> right.size();
}

}  // namespace

bool natural_less(std::string_view left, std::string_view right) {
  const auto order = compare_naturally(left, right);
  return order != 0 ? order < 0 : left < right;
}

}  // namespace lrun::rendezvous
