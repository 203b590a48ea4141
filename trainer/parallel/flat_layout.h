// Where each parameter lies in the one flat vector, and which rank owns which part of it.
//
// Pure. The layout depends on the model alone, never on the world size: slots of
// 64 bytes, the whole padded to norm blocks of 4,096 elements; rank r of N owns norm blocks
// [B·r/N, B·(r+1)/N).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/comm/comm.h"

namespace lrun::parallel {

inline constexpr std::int64_t kSlotElements = 16;  // 64 bytes of fp32
inline constexpr std::int64_t kNormBlockElements = 4096;

struct Slot {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;    // elements, multiple of kSlotElements
  std::int64_t elements = 0;  // without padding
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct FlatLayout {
  std::vector<Slot> slots;
  std::int64_t elements = 0;  // with padding, multiple of kNormBlockElements

  std::int64_t norm_blocks() const { return elements / kNormBlockElements; }
  // Empty where there are more ranks than norm blocks.
  comm::Range owned_by(GlobalRank rank, int world_size) const;
  // Of every rank, in rank order; contiguous, covers [0, elements).
  std::vector<comm::Range> shards(int world_size) const;
};

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};

// Slots in the order given. Throws std::invalid_argument when two parameters share a name.
FlatLayout make_layout(const std::vector<NamedShape>& parameters);

}  // namespace lrun::parallel
