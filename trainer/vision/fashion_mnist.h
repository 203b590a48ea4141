// Fashion-MNIST (Xiao et al. 2017): 60,000 training and 10,000 test images of 28 × 28, ten classes.
//
// Owns the split: the last `validation_samples` training images are held out. Files: idx_file.h.
#pragma once

#include <filesystem>
#include <memory>

#include "trainer/data/image_dataset.h"
#include "trainer/loop/data_module.h"

namespace lrun::vision {

class FashionMnist final : public loop::DataModule {
 public:
  struct Options {
    std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
    int leaf_size = 16;
    int eval_batch_size = 250;
    std::int64_t validation_samples = 5000;  // 0: no validation
    int prefetch_batches = 2;
  };
  explicit FashionMnist(Options options) : options_(std::move(options)) {}

  void setup(loop::Stage stage) override;
  const data::Dataset* train_data() override { return train_.get(); }
  const data::Dataset* validation_data() override { return validation_.get(); }
  const data::Dataset* test_data() override { return test_.get(); }
  int leaf_size() const override { return options_.leaf_size; }
  int eval_batch_size() const override { return options_.eval_batch_size; }
  int prefetch_batches() const override { return options_.prefetch_batches; }

 private:
  void setup_training();

  Options options_;
  std::unique_ptr<data::ImageDataset> train_;
  std::unique_ptr<data::ImageDataset> validation_;
  std::unique_ptr<data::ImageDataset> test_;
};

}  // namespace lrun::vision
