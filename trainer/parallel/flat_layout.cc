#include "trainer/parallel/flat_layout.h"

#include <set>
#include <stdexcept>

namespace lrun::parallel {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

}  // namespace

comm::Range FlatLayout::owned_by(GlobalRank rank, int world_size) const {
  const std::int64_t blocks = norm_blocks();
  return {blocks * rank.value / world_size * kNormBlockElements,
          blocks * (rank.value + 1) / world_size * kNormBlockElements};
}

std::vector<comm::Range> FlatLayout::shards(int world_size) const {
  std::vector<comm::Range> ranges;
  for (int rank = 0; rank < world_size; ++rank) {
    ranges.push_back(owned_by(GlobalRank{rank}, world_size));
  }
  return ranges;
}

FlatLayout make_layout(const std::vector<NamedShape>& parameters) {
  FlatLayout layout;
  std::set<std::string> names;
  for (const NamedShape& parameter : parameters) {
    if (!names.insert(parameter.name).second) {
      throw std::invalid_argument("two parameters are named '" + parameter.name +
                                  "': names must be unique");
    }
    const std::int64_t elements = product(parameter.shape);
    layout.slots.push_back({parameter.name, parameter.shape, layout.elements, elements});
    layout.elements += round_up(elements, kSlotElements);
  }
  layout.elements = round_up(layout.elements, kNormBlockElements);
  return layout;
}

}  // namespace lrun::parallel
