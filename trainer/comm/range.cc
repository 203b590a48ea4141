#include "trainer/comm/range.h"

namespace lrun::comm {

std::vector<Range> even_shards(std::int64_t whole, int parts) {
  std::vector<Range> shards;
  for (int part = 0; part < parts; ++part) {
    shards.push_back({whole * part / parts, whole * (part + 1) / parts});
  }
  return shards;
}

}  // namespace lrun::comm
