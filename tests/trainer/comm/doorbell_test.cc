#include "trainer/comm/doorbell.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace lrun::comm {
namespace {

bool is_ringing(const Doorbell& bell) {
  pollfd waiting{bell.descriptor(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(Doorbell, WakesOnlyASleeperAndOnlyOnce) {
  Doorbell bell = Doorbell::create();
  bell.ring();
  EXPECT_FALSE(is_ringing(bell)) << "nobody sleeps";
  bell.arm();
  bell.ring();
  EXPECT_TRUE(is_ringing(bell));
  bell.take_ring();
  bell.ring();
  EXPECT_FALSE(is_ringing(bell)) << "rung already";
  bell.arm();
  bell.disarm();
  bell.ring();
  EXPECT_FALSE(is_ringing(bell)) << "awake again";
}

// A ring that is written after its owner has woken for another reason ends one sleep, not all.
TEST(Doorbell, ALateRingIsTakenAway) {
  Doorbell bell = Doorbell::create();
  bell.arm();
  bell.ring();
  bell.disarm();
  bell.arm();
  EXPECT_TRUE(is_ringing(bell));
  bell.take_ring();
  bell.disarm();
  bell.arm();
  EXPECT_FALSE(is_ringing(bell));
}

TEST(Doorbell, IsRungThroughTheDescriptorsOfItsOwner) {
  Doorbell bell = Doorbell::create();
  Doorbell peer = Doorbell::open(Fd(::dup(bell.memory_descriptor())), Fd(::dup(bell.descriptor())));
  peer.ring();
  EXPECT_FALSE(is_ringing(bell));
  bell.arm();
  peer.ring();
  EXPECT_TRUE(is_ringing(bell));
}

// Memory that could shrink under a reader, or is of another size, is refused.
TEST(SharedMemory, OnlySealedMemoryOfTheRightSizeIsMapped) {
  const SharedMemory memory = SharedMemory::create(8192);
  EXPECT_NO_THROW(SharedMemory::map(Fd(::dup(memory.descriptor())), 8192));
  EXPECT_THROW(SharedMemory::map(Fd(::dup(memory.descriptor())), 4096), std::runtime_error);
  EXPECT_NE(::ftruncate(memory.descriptor(), 0), 0);
  EXPECT_THROW(SharedMemory::map(Fd(::dup(0)), 8192), std::runtime_error);
}

}  // namespace
}  // namespace lrun::comm
