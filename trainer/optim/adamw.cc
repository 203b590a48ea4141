#include "trainer/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace lrun::optim {
namespace {

void require(bool holds, const std::string& name, double value, const std::string& accepted) {
  if (holds) return;
  throw std::invalid_argument("AdamW " + name + " = " + std::to_string(value) +
                              " is not usable: give " + accepted);
}

}  // namespace

void validate(const AdamWOptions& options) {
  require(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "0 up to below 1");
  require(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "0 up to below 1");
  require(options.epsilon >= 0 && std::isfinite(options.epsilon), "epsilon", options.epsilon,
          "a finite number that is not negative");
  require(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight decay",
          options.weight_decay, "a finite number that is not negative");
}

AdamW::AdamW(std::int64_t elements, const AdamWOptions& options)
    : options_(options),
      exp_avg_(at::zeros({elements}, at::kFloat)),
      exp_avg_sq_(at::zeros({elements}, at::kFloat)),
      step_(at::zeros({}, at::kFloat)),
      divisor_(at::zeros({}, at::kFloat)) {
  validate(options);
}

void AdamW::update(at::Tensor& parameters, at::Tensor& gradients, double learning_rate,
                   double divisor, std::int64_t t) {
  const at::NoGradGuard no_grad;
  step_.fill_(static_cast<double>(t));
  divisor_.fill_(std::min<double>(divisor, std::numeric_limits<float>::max()));
  at::_fused_adamw_(parameters, gradients, exp_avg_, exp_avg_sq_, /*max_exp_avg_sqs=*/{}, step_,
                    learning_rate, options_.beta1, options_.beta2, options_.weight_decay,
                    options_.epsilon, /*amsgrad=*/false, /*maximize=*/false, divisor_,
                    /*found_inf=*/std::nullopt);
}

}  // namespace lrun::optim
