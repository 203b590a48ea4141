#include "trainer/parallel/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include "tests/trainer/parallel/small_model.h"
#include "tests/trainer/parallel/worlds.h"
#include "trainer/parallel/determinism.h"

namespace lrun::parallel {
namespace {

constexpr int kSteps = 20;
constexpr double kRate = 3e-3;

// What one rank ends with.
struct Outcome {
  std::string weights;
  StepResult last;
  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.weights == b.weights && a.last.grad_norm == b.last.grad_norm &&
           a.last.loss_sum == b.last.loss_sum && a.last.count == b.last.count;
  }
};

// Trains in a world of threads; every rank must end with the same outcome.
Outcome outcome_of(int world_size, const Options& options, const SmallModelOptions& shape = {}) {
  std::mutex mutex;
  std::map<int, Outcome> outcomes;
  run_world(world_size, [&](comm::Comm& comm) {
    SmallModel model(shape);
    DataParallel training(named_parameters(model), comm, options);
    const StepResult last = train(training, model, kSteps, kRate);
    const std::lock_guard lock(mutex);
    outcomes[comm.rank().value] = {training.weights_sha256(), last};
  });
  for (const auto& [rank, outcome] : outcomes) {
    EXPECT_EQ(outcome, outcomes.at(0)) << "rank " << rank << " of " << world_size;
  }
  return outcomes.at(0);
}

// The same steps in one process, with PyTorch's own optimizer and clipping.
std::vector<at::Tensor> reference_parameters(const Options& options) {
  SmallModel model;
  torch::optim::AdamW optimizer(model.parameters(),
                                torch::optim::AdamWOptions(kRate).weight_decay(0.01));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    at::Tensor loss = at::zeros({});
    for (int leaf = 0; leaf < options.leaves; ++leaf) {
      loss = loss + model.loss_sum(batch_of(step, leaf));
    }
    (loss / (kLeafSamples * options.leaves)).backward();
    if (options.max_norm > 0) {
      torch::nn::utils::clip_grad_norm_(model.parameters(), options.max_norm);
    }
    optimizer.step();
  }
  return model.parameters();
}

double largest_relative_difference(const std::vector<at::Tensor>& a,
                                   const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = (a[i] - b[i]).abs().max().item<double>();
    largest = std::max(largest, difference / b[i].abs().max().item<double>());
  }
  return largest;
}

std::string sentence_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class BitEquality : public testing::TestWithParam<int> {};

// The promise of the library: neither world size nor stage changes a bit of weights, norm or loss.
TEST_P(BitEquality, HoldsForEveryWorldSizeAndStage) {
  Options options{.leaves = GetParam(), .max_norm = 1.0, .bucket_bytes = 16 << 10};
  const Outcome alone = outcome_of(1, options);
  EXPECT_TRUE(alone.last.was_applied);
  EXPECT_EQ(alone.last.count, kLeafSamples * options.leaves);
  for (const int world_size : {1, 2, 3, 4, 6}) {
    if (world_size > options.leaves) continue;
    for (const int stage : {0, 1}) {
      options.zero_stage = stage;
      EXPECT_EQ(outcome_of(world_size, options), alone)
          << "world size " << world_size << ", stage " << stage;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Leaves, BitEquality, testing::Values(4, 6, 8, 12));

TEST(DataParallel, BucketSizeChangesNoBit) {
  Options options{.leaves = 4, .zero_stage = 1, .bucket_bytes = 1};
  const Outcome many_buckets = outcome_of(2, options);
  options.bucket_bytes = 1 << 30;
  EXPECT_EQ(outcome_of(2, options), many_buckets);
}

TEST(DataParallel, AgreesWithPyTorchsAdamWInOneProcess) {
  for (const double max_norm : {0.0, 0.2}) {
    const Options options{.leaves = 4, .max_norm = max_norm};
    run_world(1, [&](comm::Comm& comm) {
      SmallModel model;
      DataParallel training(named_parameters(model), comm, options);
      const StepResult last = train(training, model, kSteps, kRate);
      EXPECT_GT(last.grad_norm, max_norm) << "nothing was clipped";
      EXPECT_LT(largest_relative_difference(model.parameters(), reference_parameters(options)),
                1e-5);
    });
  }
}

TEST(DataParallel, UnusedParametersCountAsZeroGradient) {
  const SmallModelOptions shape{.has_unused = true};
  Options options{.leaves = 4};
  const Outcome alone = outcome_of(1, options, shape);
  for (const int stage : {0, 1}) {
    options.zero_stage = stage;
    EXPECT_EQ(outcome_of(3, options, shape), alone);
  }
}

// pytorch/pytorch#124193: used is what any leaf of any rank used.
TEST(DataParallel, AParameterUsedByOneLeafOnlyIsTrained) {
  std::mutex mutex;
  std::map<int, std::string> hashes;
  for (const int world_size : {1, 2, 4}) {
    run_world(world_size, [&](comm::Comm& comm) {
      at::Tensor always = at::ones({100}).requires_grad_();
      at::Tensor seldom = at::ones({100}).requires_grad_();
      DataParallel training({{"always", always}, {"seldom", seldom}}, comm,
                            {.leaves = 4, .zero_stage = 1, .adamw = {.weight_decay = 0}});
      for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
        training.begin_leaf(leaf);
        (leaf == 2 ? (always * seldom).sum() : (always * always).sum()).backward();
        training.end_leaf(leaf, 0, 1);
      }
      training.step(0.1);
      EXPECT_LT(seldom.max().item<float>(), 1.0f);
      const std::lock_guard lock(mutex);
      hashes[world_size] = training.weights_sha256();
    });
  }
  EXPECT_EQ(hashes[2], hashes[1]);
  EXPECT_EQ(hashes[4], hashes[1]);
}

TEST(DataParallel, AParameterUsedTwiceInAGraphArrivesOnce) {
  run_world(1, [](comm::Comm& comm) {
    at::Tensor weight = at::full({3}, 2.0f).requires_grad_();
    DataParallel training({{"weight", weight}}, comm, {.leaves = 1});
    training.begin_leaf(0);
    (weight * weight + weight).sum().backward();  // gradient 2·w + 1 = 5
    training.end_leaf(0, 0, 1);
    EXPECT_NEAR(training.step(0.1).grad_norm, 5 * std::sqrt(3.0), 1e-6);
  });
}

TEST(DataParallel, InitialParametersAreThoseOfRankZero) {
  std::mutex mutex;
  std::map<int, std::string> hashes;
  run_world(3, [&](comm::Comm& comm) {
    SmallModel model({}, static_cast<std::uint64_t>(comm.rank().value));
    const DataParallel training(named_parameters(model), comm, {.leaves = 3});
    const std::lock_guard lock(mutex);
    hashes[comm.rank().value] = training.weights_sha256();
  });
  run_world(1, [&](comm::Comm& comm) {
    SmallModel model({}, 0);
    const DataParallel training(named_parameters(model), comm, {.leaves = 3});
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(hashes[rank], training.weights_sha256());
  });
}

// keras-team/keras#4848: one bad batch must not reach weights or moments, on any rank.
TEST(DataParallel, NonFiniteGradientsChangeNothingAnywhere) {
  for (const int stage : {0, 1}) {
    run_world(2, [&](comm::Comm& comm) {
      SmallModel model;
      DataParallel training(named_parameters(model), comm, {.leaves = 4, .zero_stage = stage});
      train(training, model, 2, kRate);
      const std::string before = training.weights_sha256();
      const at::Tensor moments = training.owned_state()[1].values->clone();
      for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
        training.begin_leaf(leaf);
        const float scale = leaf == 3 ? std::numeric_limits<float>::infinity() : 1.0f;
        (model.loss_sum(batch_of(2, leaf)) * scale).backward();
        training.end_leaf(leaf, 1, kLeafSamples);
      }
      const StepResult result = training.step(kRate);
      EXPECT_FALSE(result.was_applied);
      EXPECT_FALSE(std::isfinite(result.grad_norm));
      EXPECT_EQ(training.weights_sha256(), before);
      EXPECT_TRUE(at::equal(*training.owned_state()[1].values, moments));
      EXPECT_EQ(training.optimizer_steps(), 2);
      EXPECT_TRUE(train(training, model, 1, kRate).was_applied) << "training did not recover";
    });
  }
}

TEST(DataParallel, CountsAndLossesAreThoseOfTheWholeBatch) {
  run_world(2, [](comm::Comm& comm) {
    at::Tensor weight = at::ones({8}).requires_grad_();
    DataParallel training({{"weight", weight}}, comm, {.leaves = 4});
    for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
      training.begin_leaf(leaf);
      if (leaf != 1) (weight.sum() * (leaf + 1)).backward();  // leaf 1 is empty
      training.end_leaf(leaf, 0.5 * leaf, leaf == 1 ? 0 : leaf + 1);
    }
    const StepResult result = training.step(0);
    EXPECT_EQ(result.count, 1 + 3 + 4);
    EXPECT_EQ(result.loss_sum, 0.5 * 6);
    EXPECT_NEAR(result.grad_norm, std::sqrt(8.0) * (1 + 3 + 4) / 8, 1e-6);
  });
}

TEST(DataParallel, StateMovesToAnotherInstanceAndWorld) {
  std::map<std::string, std::vector<float>> saved;
  std::string expected;
  const Options options{.leaves = 4, .zero_stage = 1, .max_norm = 1};
  run_world(1, [&](comm::Comm& comm) {
    SmallModel model;
    DataParallel training(named_parameters(model), comm, options);
    train(training, model, 3, kRate);
    for (const OwnedState& state : training.owned_state()) {
      const float* values = state.values->const_data_ptr<float>();
      saved[state.kind].assign(values, values + state.values->numel());
    }
    compute_leaves(training, model, 3);
    training.step(kRate);
    expected = training.weights_sha256();
  });
  for (const int stage : {0, 1}) {
    run_world(2, [&](comm::Comm& comm) {
      SmallModel model({}, 5);
      Options others = options;
      others.zero_stage = stage;
      DataParallel training(named_parameters(model), comm, others);
      for (const OwnedState& state : training.owned_state()) {
        std::copy_n(saved.at(state.kind).begin() + training.owned().begin, training.owned().size(),
                    state.values->data_ptr<float>());
      }
      training.after_load(3);
      compute_leaves(training, model, 3);
      training.step(kRate);
      EXPECT_EQ(training.weights_sha256(), expected) << "stage " << stage;
    });
  }
}

TEST(DataParallel, ASecondInstanceTakesOverTheSameModel) {
  run_world(1, [](comm::Comm& comm) {
    SmallModel model;
    std::string hash;
    {
      DataParallel first(named_parameters(model), comm, {.leaves = 2});
      train(first, model, 2, kRate);
      hash = first.weights_sha256();
    }
    DataParallel second(named_parameters(model), comm, {.leaves = 2});
    EXPECT_EQ(second.weights_sha256(), hash);
    EXPECT_TRUE(train(second, model, 1, kRate).was_applied);
  });
}

TEST(DataParallelErrors, FewerLeavesThanWorkers) {
  const std::string sentence = sentence_of([] {
    run_world(3, [](comm::Comm& comm) {
      SmallModel model;
      const DataParallel training(named_parameters(model), comm, {.leaves = 2});
    });
  });
  EXPECT_THAT(sentence, testing::HasSubstr("2 leaves cannot feed 3 workers"));
}

TEST(DataParallelErrors, DifferentModelsAreNamedOnEveryRank) {
  std::mutex mutex;
  std::map<int, std::string> sentences;
  run_world(3, [&](comm::Comm& comm) {
    const std::int64_t hidden = comm.rank().value == 2 ? 49 : 48;
    SmallModel model({.hidden = hidden});
    const std::string sentence = sentence_of(
        [&] { const DataParallel training(named_parameters(model), comm, {.leaves = 3}); });
    const std::lock_guard lock(mutex);
    sentences[comm.rank().value] = sentence;
  });
  for (const auto& [rank, sentence] : sentences) {
    EXPECT_EQ(sentence,
              "global rank 0 has parameter 'hidden.weight' [48,400] of dtype Float where global "
              "rank 2 has parameter 'hidden.weight' [49,400] of dtype Float: build the same model "
              "with the same options on every rank");
  }
}

TEST(DataParallelErrors, DifferentOptionsAreNamed) {
  const std::string sentence = sentence_of([] {
    run_world(2, [](comm::Comm& comm) {
      SmallModel model;
      const double max_norm = comm.rank().value;
      const DataParallel training(named_parameters(model), comm,
                                  {.leaves = 2, .max_norm = max_norm});
    });
  });
  EXPECT_THAT(sentence, testing::HasSubstr("option max_norm = 0 where global rank 1 has"));
}

class Misuse : public testing::Test {
 protected:
  // The sentence of what `act` throws on a model of one weight, in a world of one.
  static std::string complaint(const std::function<void(DataParallel&, at::Tensor&)>& act) {
    return sentence_of([&] {
      run_world(1, [&](comm::Comm& comm) {
        at::Tensor weight = at::ones({8}).requires_grad_();
        DataParallel training({{"weight", weight}}, comm, {.leaves = 2});
        act(training, weight);
      });
    });
  }
};

TEST_F(Misuse, LeavesOutOfOrder) {
  EXPECT_THAT(complaint([](DataParallel& training, at::Tensor&) { training.begin_leaf(1); }),
              testing::HasSubstr("begin_leaf(1) is out of order"));
  EXPECT_THAT(complaint([](DataParallel& training, at::Tensor&) { training.end_leaf(0, 0, 1); }),
              testing::HasSubstr("end_leaf(0) without its begin_leaf"));
  EXPECT_THAT(complaint([](DataParallel& training, at::Tensor&) { training.step(0.1); }),
              testing::HasSubstr("step() before every leaf"));
}

TEST_F(Misuse, TwoBackwardsInOneLeaf) {
  EXPECT_THAT(complaint([](DataParallel& training, at::Tensor& weight) {
                training.begin_leaf(0);
                weight.sum().backward();
                weight.sum().backward();
              }),
              testing::HasSubstr("'weight' arrived twice in one leaf"));
}

TEST_F(Misuse, ParameterWithNewStorage) {
  EXPECT_THAT(complaint([](DataParallel& training, at::Tensor& weight) {
                for (const int leaf : {0, 1}) {
                  training.begin_leaf(leaf);
                  weight.sum().backward();
                  training.end_leaf(leaf, 0, 1);
                }
                weight.set_data(at::ones({8}));
                training.step(0.1);
              }),
              testing::HasSubstr("parameter 'weight' got new storage"));
}

TEST_F(Misuse, ABackwardOutsideOfLeavesIsLeftAlone) {
  EXPECT_EQ(complaint([](DataParallel&, at::Tensor& weight) {
              weight.sum().backward();
              EXPECT_TRUE(weight.grad().defined());
            }),
            "");
}

TEST(DataParallelErrors, ParametersOfAnotherKindAreNamed) {
  const auto complaint = [](const at::Tensor& tensor) {
    return sentence_of([&] {
      run_world(1, [&](comm::Comm& comm) {
        const DataParallel training({{"odd", tensor}}, comm, {.leaves = 1});
      });
    });
  };
  EXPECT_THAT(complaint(at::ones({2}, at::kDouble).requires_grad_()),
              testing::HasSubstr("parameter 'odd' is of dtype Double"));
  EXPECT_THAT(complaint(at::ones({2})), testing::HasSubstr("without requires_grad"));
  EXPECT_THAT(complaint(at::ones({2}).requires_grad_() * 2), testing::HasSubstr("not a leaf"));
}

}  // namespace
}  // namespace lrun::parallel
