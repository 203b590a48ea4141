// A half-open interval of elements. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace lrun::comm {

// [begin, end) in elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// `whole` elements cut into `parts` contiguous ranges whose sizes differ by at most one.
std::vector<Range> even_shards(std::int64_t whole, int parts);

}  // namespace lrun::comm
