#include "trainer/parallel/data_parallel.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>

#include "trainer/optim/clip.h"
#include "trainer/parallel/accumulation.h"
#include "trainer/parallel/agreement.h"
#include "trainer/parallel/fingerprint.h"
#include "trainer/parallel/gradient_hooks.h"
#include "trainer/parallel/gradient_reducer.h"
#include "trainer/parallel/leaf_sums.h"
#include "trainer/parallel/model_parameters.h"
#include "trainer/parallel/seeds.h"
#include "trainer/parallel/step_totals.h"

namespace lrun::parallel {
namespace {

void validate(const Options& options, int world_size) {
  const auto reject = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (options.leaves < world_size) {
    reject("a global batch of " + std::to_string(options.leaves) + " leaves cannot feed " +
           std::to_string(world_size) + " workers: use at least one leaf per worker");
  }
  if (options.zero_stage != 0 && options.zero_stage != 1) {
    reject("zero stage " + std::to_string(options.zero_stage) + " is unknown: use 0 or 1");
  }
  if (!(options.max_norm >= 0)) {
    reject("maximum gradient norm " + std::to_string(options.max_norm) +
           " is not usable: give a positive number, or 0 for no clipping");
  }
  if (options.bucket_bytes < 1) {
    reject("buckets of " + std::to_string(options.bucket_bytes) +
           " bytes are not possible: give 1 or more");
  }
  optim::validate(options.adamw);
}

// What must be the same on every rank besides the model, one line each.
std::vector<std::string> describe_options(const Options& options) {
  std::vector<std::string> lines;
  const auto add = [&lines](const char* name, auto value) {
    std::ostringstream line;
    line.precision(17);
    line << "option " << name << " = " << value;
    lines.push_back(line.str());
  };
  add("leaves", options.leaves);
  add("zero_stage", options.zero_stage);
  add("max_norm", options.max_norm);
  add("bucket_bytes", options.bucket_bytes);
  add("seed", options.seed);
  add("beta1", options.adamw.beta1);
  add("beta2", options.adamw.beta2);
  add("epsilon", options.adamw.epsilon);
  add("weight_decay", options.adamw.weight_decay);
  return lines;
}

// First of all, so that a rank with a mistake of its own leaves no other rank waiting.
NamedParameters agreed(NamedParameters parameters, comm::Comm& comm, const Options& options) {
  std::vector<std::string> lines = describe_options(options);
  for (std::string& line : describe_parameters(parameters)) lines.push_back(std::move(line));
  require_agreement(lines, comm);
  validate(options, comm.world_size());
  require_trainable(parameters);
  return parameters;
}

std::span<float> values_of(at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

at::Tensor part(const at::Tensor& flat, comm::Range range) {
  return flat.narrow(0, range.begin, range.size());
}

// Not torch::manual_seed: that also asks for CUDA, which must not happen before its plugin is open.
void seed_cpu_generator(std::uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

struct DataParallel::Impl {
  Impl(NamedParameters named, comm::Comm& a_comm, const Options& an_options);

  void begin_leaf(int leaf);
  void end_leaf(int leaf, double loss_sum, std::int64_t count);
  StepResult step(double learning_rate);
  void after_load(std::int64_t steps);

  // One gradient of the open leaf, undefined for none.
  void take_gradient(std::size_t slot, const at::Tensor& gradient);
  bool is_last_leaf() const { return leaves_done + 1 == sums.plan().steps.size(); }
  RankTotals totals();
  void update(double learning_rate, double divisor);
  void require_parameters_in_place() const;

  // What the optimizer of this rank updates.
  comm::Range updated() const {
    return options.zero_stage == 0 ? comm::Range{0, layout.elements} : owned;
  }
  // `exp_avg` or `exp_avg_sq` of the owned range.
  at::Tensor owned_part(const at::Tensor& moments) const {
    return part(moments, {owned.begin - updated().begin, owned.end - updated().begin});
  }

  comm::Comm& comm;
  Options options;
  NamedParameters parameters;
  FlatLayout layout;
  std::vector<comm::Range> shards;
  comm::Range owned;
  at::Tensor flat_parameters;
  LeafSums sums;
  GradientReducer reducer;
  optim::AdamW optimizer;
  at::Tensor owned_parameters;
  at::Tensor owned_exp_avg;
  at::Tensor owned_exp_avg_sq;
  std::int64_t steps_done = 0;

  // Of the step under way.
  std::size_t leaves_done = 0;  // of this block
  bool is_leaf_open = false;
  std::vector<bool> has_arrived;  // by slot, in the open leaf
  std::vector<double> leaf_losses;
  std::int64_t count = 0;

  std::optional<GradientHooks> hooks;  // last: no hook outlives what it uses
};

DataParallel::Impl::Impl(NamedParameters named, comm::Comm& a_comm, const Options& an_options)
    : comm(a_comm),
      options(an_options),
      parameters(agreed(std::move(named), comm, options)),
      layout(layout_of(parameters)),
      shards(layout.shards(comm.world_size())),
      owned(layout.owned_by(comm.rank(), comm.world_size())),
      flat_parameters(move_into_flat(parameters, layout)),
      sums(layout.elements,
           plan_accumulation(comm::block_of(comm.rank(), comm.world_size(), options.leaves),
                             options.leaves)),
      reducer(layout, sums, comm,
              {.reduction = options.zero_stage == 0 ? Reduction::EveryRank : Reduction::Owner,
               .leaves = options.leaves,
               .bucket_bytes = options.bucket_bytes}),
      optimizer(updated().size(), options.adamw),
      owned_parameters(part(flat_parameters, owned)),
      owned_exp_avg(owned_part(optimizer.exp_avg())),
      owned_exp_avg_sq(owned_part(optimizer.exp_avg_sq())),
      has_arrived(layout.slots.size(), false) {
  broadcast_values(flat_parameters, comm);
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back(tensor);
  hooks.emplace(tensors, [this](std::size_t slot) {
    if (!is_leaf_open) return;  // a backward of somebody else
    at::Tensor gradient = std::move(parameters[slot].second.mutable_grad());
    take_gradient(slot, gradient);
  });
}

void DataParallel::Impl::begin_leaf(int leaf) {
  const auto& leaves = sums.plan().steps;
  if (is_leaf_open || leaves_done == leaves.size() || leaves[leaves_done].leaf != leaf) {
    throw std::logic_error("begin_leaf(" + std::to_string(leaf) +
                           ") is out of order: take each leaf of block() once, in order");
  }
  for (auto& [name, tensor] : parameters) tensor.mutable_grad().reset();
  has_arrived.assign(layout.slots.size(), false);
  is_leaf_open = true;
  seed_cpu_generator(leaf_seed(options.seed, steps_done, leaf));
}

void DataParallel::Impl::take_gradient(std::size_t slot, const at::Tensor& gradient) {
  if (has_arrived[slot]) {
    throw std::runtime_error("the gradient of parameter '" + layout.slots[slot].name +
                             "' arrived twice in one leaf: add the losses and call backward once");
  }
  has_arrived[slot] = true;
  sums.add(leaves_done, layout.slots[slot], gradient);
  if (is_last_leaf()) reducer.complete(slot);
}

void DataParallel::Impl::end_leaf(int leaf, double loss_sum, std::int64_t leaf_count) {
  if (!is_leaf_open || sums.plan().steps[leaves_done].leaf != leaf) {
    throw std::logic_error("end_leaf(" + std::to_string(leaf) + ") without its begin_leaf");
  }
  for (std::size_t slot = 0; slot < layout.slots.size(); ++slot) {
    if (!has_arrived[slot]) take_gradient(slot, at::Tensor());
  }
  leaf_losses.push_back(loss_sum);
  count += leaf_count;
  ++leaves_done;
  is_leaf_open = false;
}

RankTotals DataParallel::Impl::totals() {
  at::Tensor gradients = part(sums.sum(0), owned);
  return {count, leaf_losses, optim::block_square_sums(values_of(gradients), kNormBlockElements)};
}

// A caller that replaced a parameter's storage would train a copy that nobody updates.
void DataParallel::Impl::require_parameters_in_place() const {
  const float* base = flat_parameters.const_data_ptr<float>();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    if (tensor.numel() == 0 || tensor.const_data_ptr() == base + layout.slots[i].offset) continue;
    throw std::runtime_error("parameter '" + name +
                             "' got new storage after DataParallel took it: copy values into it "
                             "instead");
  }
}

StepResult DataParallel::Impl::step(double learning_rate) {
  if (is_leaf_open || leaves_done != sums.plan().steps.size()) {
    throw std::logic_error("step() before every leaf of block() has ended");
  }
  require_parameters_in_place();
  reducer.finish();
  const StepTotals all = exchange(totals(), comm);
  leaves_done = 0;
  leaf_losses.clear();
  count = 0;

  const auto divisor = static_cast<double>(all.count);
  StepResult result{.grad_norm = all.sum_norm / divisor,
                    .was_applied = true,
                    .loss_sum = all.loss_sum,
                    .count = all.count};
  if (!std::isfinite(result.grad_norm)) {
    result.was_applied = false;
    return result;
  }
  update(learning_rate, divisor / optim::clip_factor(result.grad_norm, options.max_norm));
  return result;
}

void DataParallel::Impl::update(double learning_rate, double divisor) {
  at::Tensor target = part(flat_parameters, updated());
  at::Tensor gradients = part(sums.sum(0), updated());
  optimizer.update(target, gradients, learning_rate, divisor, ++steps_done);
  if (options.zero_stage > 0) comm.all_gather(values_of(flat_parameters), shards).wait();
}

void DataParallel::Impl::after_load(std::int64_t steps) {
  steps_done = steps;
  comm.all_gather(values_of(flat_parameters), shards).wait();
  if (options.zero_stage > 0) return;
  comm.all_gather(values_of(optimizer.exp_avg()), shards).wait();
  comm.all_gather(values_of(optimizer.exp_avg_sq()), shards).wait();
}

DataParallel::DataParallel(NamedParameters parameters, comm::Comm& comm, Options options)
    : impl_(std::make_unique<Impl>(std::move(parameters), comm, options)) {}
DataParallel::~DataParallel() = default;

comm::Subtree DataParallel::block() const {
  return comm::block_of(impl_->comm.rank(), impl_->comm.world_size(), impl_->options.leaves);
}

void DataParallel::begin_leaf(int leaf) { impl_->begin_leaf(leaf); }

void DataParallel::end_leaf(int leaf, double loss_sum, std::int64_t count) {
  impl_->end_leaf(leaf, loss_sum, count);
}

StepResult DataParallel::step(double learning_rate) { return impl_->step(learning_rate); }

const FlatLayout& DataParallel::layout() const { return impl_->layout; }

comm::Range DataParallel::owned() const { return impl_->owned; }

std::vector<OwnedState> DataParallel::owned_state() {
  return {{"param", &impl_->owned_parameters},
          {"exp_avg", &impl_->owned_exp_avg},
          {"exp_avg_sq", &impl_->owned_exp_avg_sq}};
}

std::int64_t DataParallel::optimizer_steps() const { return impl_->steps_done; }

void DataParallel::after_load(std::int64_t optimizer_steps) { impl_->after_load(optimizer_steps); }

std::string DataParallel::weights_sha256() const {
  Sha256 hash;
  for (const Slot& slot : impl_->layout.slots) {
    hash.add(slot.name + ' ' + shape_text(slot.shape) + '\n');
    at::Tensor values = part(impl_->flat_parameters, {slot.offset, slot.offset + slot.elements});
    hash.add(std::as_bytes(values_of(values)));
  }
  return hash.finish();
}

std::int64_t DataParallel::buffer_bytes() const {
  const auto moments = impl_->optimizer.exp_avg().nbytes() + impl_->optimizer.exp_avg_sq().nbytes();
  return static_cast<std::int64_t>(impl_->flat_parameters.nbytes() + moments) + impl_->sums.bytes();
}

}  // namespace lrun::parallel
