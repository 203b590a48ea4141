#include "trainer/data/image_dataset.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace lrun::data {

ImageDataset::ImageDataset(std::shared_ptr<const LabelledImages> images, Options options)
    : images_(std::move(images)), options_(options) {
  if (options_.last < 0) options_.last = images_->count;
  if (options_.first < 0 || options_.last > images_->count || options_.first >= options_.last) {
    throw DatasetError("part [" + std::to_string(options_.first) + ", " +
                       std::to_string(options_.last) + ") of a data set of " +
                       std::to_string(images_->count) + " images is empty or outside");
  }
  fingerprint_ = data::fingerprint(*images_) + ":" + std::to_string(options_.first) + "-" +
                 std::to_string(options_.last);
}

std::int64_t ImageDataset::size() const { return options_.last - options_.first; }
std::string ImageDataset::fingerprint() const { return fingerprint_; }

Batch ImageDataset::batch(std::span<const std::int64_t> samples) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  const std::int64_t pixels = std::int64_t{images_->rows} * images_->columns;
  Batch batch{.inputs = at::empty({count, 1, images_->rows, images_->columns}, at::kFloat),
              .targets = at::empty({count}, at::kLong)};
  float* input = batch.inputs.data_ptr<float>();
  std::int64_t* target = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t sample : samples) {
    if (sample < 0 || sample >= size()) throw std::out_of_range("sample " + std::to_string(sample));
    const auto image = static_cast<std::size_t>(options_.first + sample);
    const std::uint8_t* pixel = images_->pixels.data() + image * static_cast<std::size_t>(pixels);
    for (std::int64_t i = 0; i < pixels; ++i) {
      *input++ = (static_cast<float>(pixel[i]) / 255.0F - options_.mean) / options_.deviation;
    }
    *target++ = images_->labels[image];
  }
  return batch;
}

}  // namespace lrun::data
