// AdamW on a flat shard (trainer.md §3.10; Loshchilov & Hutter 2019).
#pragma once

#include <cstdint>

namespace lrun::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

}  // namespace lrun::optim
