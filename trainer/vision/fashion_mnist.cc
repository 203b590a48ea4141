#include "trainer/vision/fashion_mnist.h"

#include <utility>

#include "trainer/data/idx_file.h"

namespace lrun::vision {
namespace {

constexpr int kClasses = 10;
constexpr int kSide = 28;
// Of all training pixels.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

std::shared_ptr<const data::LabelledImages> read(const std::filesystem::path& folder,
                                                 const std::string& prefix) {
  auto images =
      std::make_shared<data::LabelledImages>(data::read_labelled_images(folder, prefix, kClasses));
  if (images->rows == kSide && images->columns == kSide) return images;
  throw data::DatasetError("images in " + folder.string() + " are " + std::to_string(images->rows) +
                           " × " + std::to_string(images->columns) +
                           "; accepted: 28 × 28 (set data.path to Fashion-MNIST)");
}

}  // namespace

void FashionMnist::setup(loop::Stage stage) {
  if (stage == loop::Stage::Test) {
    if (test_) return;
    test_ = std::make_unique<data::ImageDataset>(
        read(options_.folder, "t10k"),
        data::ImageDataset::Options{.mean = kMean, .deviation = kDeviation});
  } else if (!train_) {
    setup_training();
  }
}

void FashionMnist::setup_training() {
  const auto images = read(options_.folder, "train");
  const std::int64_t first_held_out = images->count - options_.validation_samples;
  if (first_held_out < 1) {
    throw data::DatasetError(
        "data.validation_samples is " + std::to_string(options_.validation_samples) +
        "; accepted: less than the " + std::to_string(images->count) + " training images");
  }
  train_ = std::make_unique<data::ImageDataset>(
      images, data::ImageDataset::Options{
                  .mean = kMean, .deviation = kDeviation, .first = 0, .last = first_held_out});
  if (options_.validation_samples == 0) return;
  validation_ = std::make_unique<data::ImageDataset>(
      images,
      data::ImageDataset::Options{.mean = kMean, .deviation = kDeviation, .first = first_held_out});
}

}  // namespace lrun::vision
