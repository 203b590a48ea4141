#include "trainer/optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lrun::optim {
namespace {

std::vector<float> values(std::size_t count) {
  std::minstd_rand random(7);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random()) / 1e9f - 1.0f;
  return numbers;
}

TEST(Clip, BlockSumsAreTheSameWhereverTheVectorIsCut) {
  const auto all = values(8 * 64);
  const auto whole = block_square_sums(all, 64);
  ASSERT_EQ(whole.size(), 8u);
  auto parts = block_square_sums(std::span(all).first(3 * 64), 64);
  const auto rest = block_square_sums(std::span(all).subspan(3 * 64), 64);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST(Clip, NormIsExactToDoublePrecision) {
  const auto all = values(4096);
  long double exact = 0;
  for (const float value : all) exact += static_cast<long double>(value) * value;
  const double norm = norm_of(block_square_sums(all, 64));
  EXPECT_NEAR(norm, std::sqrt(static_cast<double>(exact)), 1e-12 * norm);
}

TEST(Clip, SquaresBeyondFloatRangeStayFinite) {
  const std::vector<float> huge(8, 1e30f);
  EXPECT_NEAR(norm_of(block_square_sums(huge, 8)), std::sqrt(8.0) * 1e30, 1e24);
}

TEST(Clip, OneBadElementMakesTheNormNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto all = values(128);
    all[77] = bad;
    EXPECT_FALSE(std::isfinite(norm_of(block_square_sums(all, 64))));
  }
}

TEST(Clip, FactorScalesDownOnly) {
  EXPECT_DOUBLE_EQ(clip_factor(2.0, 1.0), 1.0 / (2.0 + 1e-6));
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(1e9, 0), 1.0);  // no clipping
}

}  // namespace
}  // namespace lrun::optim
