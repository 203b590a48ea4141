// Everything that a configuration file of lrun-train may say, with its defaults.
//
// Pure. One table (`keys`) names each key once: reading, printing, checking and the copy inside a
// checkpoint all follow it. Refuses to know YAML (yaml_config.h). The keys are explained in
// docs/trainer.md.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "trainer/loop/batch_limit.h"

namespace lrun::train {

struct Config {
  struct Model {
    std::string name = "cnn";
    std::int64_t channels = 8;  // cnn: of the first convolution; the second has twice as many
    std::int64_t hidden = 64;   // units of the hidden layer
    double dropout = 0;
  };
  struct Data {
    std::string name = "fashion_mnist";
    std::string path = "/usr/share/datasets/fashion-mnist";
    std::int64_t leaf_size = 16;
    std::int64_t eval_batch_size = 250;
    std::int64_t validation_samples = 5000;
    std::int64_t prefetch_batches = 2;
  };
  struct Trainer {
    std::string default_root_dir = "lrun-run";
    std::int64_t max_epochs = 2;
    std::int64_t max_steps = -1;
    loop::BatchLimit limit_train_batches;
    loop::BatchLimit limit_val_batches;
    loop::BatchLimit limit_test_batches;
    std::int64_t leaves = 12;
    std::int64_t threads = 1;
    std::int64_t log_every_n_steps = 50;
    std::int64_t check_val_every_n_epoch = 1;
    double gradient_clip_val = 0;
    bool enable_progress_bar = true;
  };
  struct Optimizer {
    std::string name = "adamw";
    double lr = 0.002;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0.01;
  };
  struct Schedule {
    std::string name = "cosine";
    std::int64_t warmup_steps = 0;
    double floor = 0;
  };
  struct Checkpoint {
    std::int64_t every_n_train_steps = 100;
    std::int64_t every_n_epochs = 1;
    std::int64_t keep_last = 3;
  };
  struct Logging {
    bool csv = true;
    bool tensorboard = true;
  };

  std::int64_t seed = 42;
  std::string strategy = "ddp";
  Model model;
  Data data;
  Trainer trainer;
  Optimizer optimizer;
  Schedule schedule;
  Checkpoint checkpoint;
  Logging logging;
};

// One key of the configuration: its dotted path, where its value lives, and what it accepts.
struct Key {
  using Place = std::variant<bool*, std::int64_t*, double*, std::string*, loop::BatchLimit*>;
  std::string path;
  Place place;
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::vector<std::string> one_of = {};  // of a string; empty: any but ""
};

// All keys, in the order in which they are printed. The places point into `config`.
std::vector<Key> keys(Config& config);

// "an integer of at least 1", "one of ddp, zero1", …
std::string accepted(const Key& key);

// Stores the value that `text` spells. False: it is not one that the key accepts.
bool assign(const Key& key, const std::string& text);

// The value as a configuration file would spell it; assign() reads it back to the same bits.
std::string spell(const Key& key);

// All values by path, as they are saved in checkpoints.
std::map<std::string, std::string> flatten(const Config& config);

// The known path that is closest to a misspelt one; empty when none is near.
std::string nearest_key(const std::string& path);

}  // namespace lrun::train
