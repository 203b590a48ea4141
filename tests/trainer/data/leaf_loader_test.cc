// Batches arrive in order and complete, whatever is prefetched.
#include "trainer/data/leaf_loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "trainer/data/image_dataset.h"

namespace lrun::data {
namespace {

// Sample i is the number i.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::string fingerprint() const override { return "numbers"; }
  Batch batch(std::span<const std::int64_t> samples) const override {
    for (const std::int64_t sample : samples) {
      if (sample == broken_) throw DatasetError("sample " + std::to_string(sample) + " is broken");
    }
    const at::Tensor values =
        at::tensor(c10::ArrayRef<std::int64_t>(samples.data(), samples.size()));
    return {.inputs = values, .targets = values};
  }
  void break_sample(std::int64_t sample) { broken_ = sample; }

 private:
  std::int64_t size_;
  std::int64_t broken_ = -1;
};

ElasticSampler sampler_of(std::int64_t samples) {
  return ElasticSampler({.seed = 3, .samples = samples, .leaves = 4, .leaf_size = 3});
}

std::vector<std::int64_t> values_of(const GlobalBatch& batch) {
  std::vector<std::int64_t> values;
  for (const Leaf& leaf : batch.leaves) {
    EXPECT_EQ(leaf.batch.size(), static_cast<std::int64_t>(leaf.samples.size()));
    for (std::int64_t i = 0; i < leaf.batch.size(); ++i) {
      values.push_back(leaf.batch.targets[i].item<std::int64_t>());
    }
  }
  return values;
}

// B120: the position counts consumed batches, not prefetched ones; ids as without interruption.
TEST(LeafLoader, B120_PositionIsThatOfConsumedBatchesForAnyPrefetch) {
  const Numbers numbers(50);
  const ElasticSampler sampler = sampler_of(50);
  const comm::Subtree block{.first = 1, .last = 3};
  std::vector<std::vector<std::int64_t>> undisturbed;
  LeafLoader whole(numbers, sampler, {.block = block, .start = {}, .prefetch = 0});
  for (int i = 0; i < 12; ++i) undisturbed.push_back(values_of(whole.next()));
  for (const int prefetch : {0, 1, 4}) {
    std::vector<std::vector<std::int64_t>> seen;
    Position position{};
    while (seen.size() < 12) {
      // A resume of a resume of …: each life consumes three batches and is dropped with its queue.
      LeafLoader loader(numbers, sampler,
                        {.block = block, .start = position, .prefetch = prefetch});
      for (int i = 0; i < 3; ++i) {
        const GlobalBatch batch = loader.next();
        EXPECT_EQ(batch.position, position);
        seen.push_back(values_of(batch));
        position = sampler.after(batch.position);
      }
    }
    EXPECT_EQ(seen, undisturbed) << "prefetch " << prefetch;
  }
}

TEST(LeafLoader, LeavesWithoutSamplesHaveNoTensors) {
  const Numbers numbers(14);
  LeafLoader loader(numbers, sampler_of(14), {.block = {.first = 0, .last = 4}, .start = {}});
  loader.next();
  const GlobalBatch last = loader.next();
  EXPECT_EQ(last.size, 2);
  EXPECT_EQ(last.leaves[0].batch.size(), 2);
  EXPECT_FALSE(last.leaves[1].batch.inputs.defined());
  EXPECT_EQ(loader.next().position, (Position{.epoch = 1, .consumed = 0}));
}

TEST(LeafLoader, FailuresReachTheComputeThread) {
  Numbers numbers(50);
  numbers.break_sample(sampler_of(50).sample_at(0, 13));
  LeafLoader loader(numbers, sampler_of(50), {.block = {.first = 0, .last = 4}, .start = {}});
  loader.next();
  EXPECT_THROW(loader.next(), DatasetError);
}

TEST(ImageDataset, ScalesPixelsAndKeepsToItsPart) {
  auto images = std::make_shared<LabelledImages>(LabelledImages{
      .count = 3, .rows = 1, .columns = 2, .pixels = {0, 255, 51, 102, 0, 0}, .labels = {4, 5, 6}});
  const ImageDataset part(images, {.mean = 0.5F, .deviation = 0.5F, .first = 1, .last = 3});
  EXPECT_EQ(part.size(), 2);
  const std::int64_t first = 0;
  const Batch batch = part.batch(std::span(&first, 1));
  EXPECT_EQ(batch.inputs.sizes(), (std::vector<std::int64_t>{1, 1, 1, 2}));
  EXPECT_FLOAT_EQ(batch.inputs[0][0][0][0].item<float>(), (0.2F - 0.5F) / 0.5F);
  EXPECT_EQ(batch.targets[0].item<std::int64_t>(), 5);
  const ImageDataset all(images, {});
  EXPECT_NE(all.fingerprint(), part.fingerprint());
  EXPECT_THROW(ImageDataset(images, {.first = 2, .last = 2}), DatasetError);
}

}  // namespace
}  // namespace lrun::data
