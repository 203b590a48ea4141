#include "trainer/vision/small_networks.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <utility>

namespace lrun::vision {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kKernel = 3;
constexpr std::int64_t kPool = 2;

}  // namespace

Network::Network(torch::nn::Sequential layers)
    : layers_(register_module("layers", std::move(layers))) {}

std::shared_ptr<Network> make_cnn(const CnnOptions& options) {
  using namespace torch::nn;
  const std::int64_t first = options.channels;
  const std::int64_t second = 2 * options.channels;
  const std::int64_t side = kSide / kPool / kPool;
  return std::make_shared<Network>(
      Sequential(Conv2d(Conv2dOptions(1, first, kKernel).padding(1)), ReLU(), MaxPool2d(kPool),
                 Conv2d(Conv2dOptions(first, second, kKernel).padding(1)), ReLU(), MaxPool2d(kPool),
                 Flatten(), Linear(second * side * side, options.hidden), ReLU(),
                 Dropout(options.dropout), Linear(options.hidden, options.classes)));
}

std::shared_ptr<Network> make_mlp(const MlpOptions& options) {
  using namespace torch::nn;
  return std::make_shared<Network>(Sequential(Flatten(), Linear(kSide * kSide, options.hidden),
                                              ReLU(), Dropout(options.dropout),
                                              Linear(options.hidden, options.classes)));
}

}  // namespace lrun::vision
