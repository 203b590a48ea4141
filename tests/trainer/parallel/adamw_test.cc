#include "trainer/optim/adamw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>

#include "trainer/parallel/determinism.h"

namespace lrun::optim {
namespace {

constexpr std::int64_t kElements = 8192;
constexpr int kSteps = 30;

at::Tensor gradient_of(int step) {
  torch::manual_seed(step);
  return at::randn({kElements});
}

// Parameters after all steps, updated in pieces that end at `borders`.
at::Tensor train_in_pieces(const std::vector<std::int64_t>& borders) {
  at::Tensor parameters = at::linspace(-1, 1, kElements);
  std::vector<AdamW> optimizers;
  std::int64_t begin = 0;
  for (const std::int64_t end : borders) {
    optimizers.emplace_back(end - begin, AdamWOptions{});
    begin = end;
  }
  for (int step = 1; step <= kSteps; ++step) {
    at::Tensor gradients = gradient_of(step);
    begin = 0;
    for (std::size_t i = 0; i < borders.size(); ++i) {
      at::Tensor piece = parameters.slice(0, begin, borders[i]);
      at::Tensor piece_gradients = gradients.slice(0, begin, borders[i]);
      optimizers[i].update(piece, piece_gradients, 1e-2, 3.0, step);
      begin = borders[i];
    }
  }
  return parameters;
}

TEST(AdamW, BitsDoNotDependOnWhereAShardIsCut) {
  parallel::pin_arithmetic();
  const at::Tensor whole = train_in_pieces({kElements});
  EXPECT_TRUE(at::equal(train_in_pieces({4096, kElements}), whole));
  EXPECT_TRUE(at::equal(train_in_pieces({16, 4112, kElements}), whole));
  EXPECT_TRUE(at::equal(train_in_pieces({0, 48, 48, 1024, kElements}), whole));
}

TEST(AdamW, AgreesWithTorchOptim) {
  parallel::pin_arithmetic();
  at::Tensor expected = at::linspace(-1, 1, kElements).requires_grad_();
  torch::optim::AdamW reference({expected}, torch::optim::AdamWOptions(1e-2));
  for (int step = 1; step <= kSteps; ++step) {
    expected.mutable_grad() = gradient_of(step) / 3.0;
    reference.step();
  }
  const at::Tensor difference = (train_in_pieces({kElements}) - expected.detach()).abs();
  EXPECT_LT(difference.max().item<float>(), 1e-6f);
}

// A gradient norm beyond the range of float, clipped: the divisor is, too.
TEST(AdamW, ADivisorBeyondFloatRangeIsNoError) {
  AdamW optimizer(16, {.weight_decay = 0});
  at::Tensor parameters = at::ones({16});
  at::Tensor gradients = at::full({16}, 1e30f);
  optimizer.update(parameters, gradients, 1e-2, 1e60, 1);
  EXPECT_TRUE(at::isfinite(parameters).all().item<bool>());
  EXPECT_LT(gradients.max().item<float>(), 1e-6f);
}

std::string complaint(const AdamWOptions& options) {
  try {
    validate(options);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(AdamW, MistakesAreNamed) {
  EXPECT_EQ(complaint({}), "");
  EXPECT_THAT(complaint({.beta1 = 1}), testing::HasSubstr("beta1 = 1"));
  EXPECT_THAT(complaint({.beta2 = -0.1}), testing::HasSubstr("beta2 = -0.1"));
  EXPECT_THAT(complaint({.epsilon = -1}), testing::HasSubstr("epsilon"));
  EXPECT_THAT(complaint({.weight_decay = -1}), testing::HasSubstr("weight decay"));
}

}  // namespace
}  // namespace lrun::optim
