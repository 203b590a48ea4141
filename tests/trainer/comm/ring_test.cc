#include "trainer/comm/ring.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

namespace lrun::comm {
namespace {

struct Memory {
  alignas(4096) std::byte bytes[Ring::kMemoryBytes] = {};
};

TEST(Ring, HoldsNoMoreThanItHasRoomFor) {
  const auto memory = std::make_unique<Memory>();
  Ring writer(memory->bytes);
  Ring reader(memory->bytes);
  constexpr std::size_t kHalf = Ring::kDataBytes / 2;
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(writer.reserve(kHalf), nullptr);
    writer.publish(kHalf);
  }
  EXPECT_EQ(writer.reserve(1), nullptr);
  ASSERT_NE(reader.front(kHalf), nullptr);
  reader.pop(kHalf);
  EXPECT_NE(writer.reserve(1), nullptr);
}

TEST(Ring, AFrameIsInvisibleUntilItIsPublished) {
  const auto memory = std::make_unique<Memory>();
  Ring writer(memory->bytes);
  Ring reader(memory->bytes);
  writer.reserve(100);
  EXPECT_EQ(reader.front(100), nullptr);
  writer.publish(100);
  EXPECT_NE(reader.front(100), nullptr);
}

// Frames of any sizes come out as they went in, and none overwrites another that is unread.
RC_GTEST_PROP(Ring, FramesComeOutAsTheyWentIn, ()) {
  const auto memory = std::make_unique<Memory>();
  Ring writer(memory->bytes);
  Ring reader(memory->bytes);
  std::deque<std::pair<std::size_t, unsigned char>> unread;
  unsigned char mark = 0;
  for (int i = 0; i < 100; ++i) {
    const auto bytes = *rc::gen::element<std::size_t>(0, 1, 64, 56, 100'000, 131'072, 524'288);
    std::byte* place = writer.reserve(bytes);
    if (place != nullptr) {
      std::memset(place, ++mark, bytes);
      writer.publish(bytes);
      unread.emplace_back(bytes, mark);
    }
    while (!unread.empty() && (place == nullptr || *rc::gen::arbitrary<bool>())) {
      const auto [size, expected] = unread.front();
      const std::byte* frame = reader.front(size);
      RC_ASSERT(frame != nullptr);
      RC_ASSERT(reinterpret_cast<std::uintptr_t>(frame) % alignof(float) == 0u);
      for (std::size_t k = 0; k < size; k += 1009) RC_ASSERT(frame[k] == std::byte{expected});
      if (size > 0) RC_ASSERT(frame[size - 1] == std::byte{expected});
      reader.pop(size);
      unread.pop_front();
      place = memory->bytes;
    }
  }
}

}  // namespace
}  // namespace lrun::comm
