// What a user program gives the Trainer to train on: data sets and the shape of batches.
//
// Owns nothing; the words are Lightning's. The Trainer makes the order, the leaves and the loader,
// so that no program can forget to shuffle, to shard or to resume. Compute thread.
#pragma once

#include "trainer/data/dataset.h"

namespace lrun::loop {

enum class Stage { Fit, Validate, Test };

class DataModule {
 public:
  virtual ~DataModule() = default;
  // Once per node, before setup on any of its workers: download, unpack.
  virtual void prepare_data() {}
  // On every worker: open what the stage needs. Throws data::DatasetError.
  virtual void setup(Stage stage) = 0;

  // After setup of their stage (Fit: train and validation). Null: there is none.
  virtual const data::Dataset* train_data() = 0;
  virtual const data::Dataset* validation_data() { return nullptr; }
  virtual const data::Dataset* test_data() { return nullptr; }

  virtual int leaf_size() const = 0;        // samples of a training leaf
  virtual int eval_batch_size() const = 0;  // samples of an evaluation batch
  virtual int prefetch_batches() const { return 2; }
};

}  // namespace lrun::loop
