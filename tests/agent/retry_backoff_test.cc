#include "agent/retry_backoff.h"

#include <gtest/gtest.h>

namespace lrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr RetryBackoff::Limits kLimits{.first = milliseconds(100), .longest = milliseconds(800)};

TEST(RetryBackoff, DoublesUpToItsLimitWithAtMostHalfTakenOff) {
  RetryBackoff backoff(7, kLimits);
  for (const int full : {100, 200, 400, 800, 800, 800}) {
    const Duration wait = backoff.next();
    EXPECT_GE(wait, milliseconds(full) / 2);
    EXPECT_LE(wait, milliseconds(full));
  }
}

TEST(RetryBackoff, BeginsSmallAgainAfterSuccess) {
  RetryBackoff backoff(7, kLimits);
  for (int turn = 0; turn < 5; ++turn) backoff.next();
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(100));
}

TEST(RetryBackoff, EqualSeedsAgreeAndOthersDoNot) {
  RetryBackoff one(1, kLimits);
  RetryBackoff same(1, kLimits);
  RetryBackoff other(2, kLimits);
  int different = 0;
  for (int turn = 0; turn < 8; ++turn) {
    const Duration wait = one.next();
    EXPECT_EQ(wait, same.next());
    different += wait != other.next() ? 1 : 0;
  }
  EXPECT_GT(different, 4);
}

}  // namespace
}  // namespace lrun::agent
