// Labelled grey images as tensors.
//
// Owns the images in memory (one byte per pixel); refuses to know files (idx_file.h). Sample i:
// inputs [1, rows, columns] fp32 = (pixel / 255 − mean) / deviation, targets int64 scalar.
#pragma once

#include <memory>

#include "trainer/data/dataset.h"
#include "trainer/data/idx_file.h"

namespace lrun::data {

class ImageDataset final : public Dataset {
 public:
  struct Options {
    float mean = 0;
    float deviation = 1;
    // The part of the images to use, [first, last); last −1: to the end.
    std::int64_t first = 0;
    std::int64_t last = -1;
  };
  // Several data sets may share one set of images (training and validation parts).
  ImageDataset(std::shared_ptr<const LabelledImages> images, Options options);

  std::int64_t size() const override;
  std::string fingerprint() const override;
  Batch batch(std::span<const std::int64_t> samples) const override;

 private:
  std::shared_ptr<const LabelledImages> images_;
  Options options_;
  std::string fingerprint_;
};

}  // namespace lrun::data
