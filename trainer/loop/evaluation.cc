#include "trainer/loop/evaluation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

namespace lrun::loop {
namespace {

using Json = nlohmann::json;

struct BatchRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

BatchRange batches_of(const comm::Comm& comm, std::int64_t batches) {
  const std::int64_t rank = comm.rank().value;
  const std::int64_t world_size = comm.world_size();
  return {.first = batches * rank / world_size, .last = batches * (rank + 1) / world_size};
}

data::Batch load(const data::Dataset& dataset, std::int64_t batch, int batch_size) {
  const std::int64_t begin = batch * batch_size;
  const std::int64_t end = std::min<std::int64_t>(begin + batch_size, dataset.size());
  std::vector<std::int64_t> samples(static_cast<std::size_t>(end - begin));
  std::iota(samples.begin(), samples.end(), begin);
  return dataset.batch(samples);
}

// CBOR keeps doubles and 64-bit integers exactly.
std::vector<std::uint8_t> to_bytes(const std::vector<EvaluationOutput>& outputs) {
  Json list = Json::array();
  for (const EvaluationOutput& output : outputs) {
    list.push_back({output.loss_sum, output.count, output.counts});
  }
  return Json::to_cbor(list);
}

void merge(const std::vector<std::byte>& bytes, double* loss_sum, EvaluationResult* result) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  for (const Json& output : Json::from_cbor(first, first + bytes.size())) {
    *loss_sum += output[0].get<double>();
    result->count += output[1].get<std::int64_t>();
    for (const auto& [name, count] : output[2].items()) {
      result->counts[name] += count.get<std::int64_t>();
    }
  }
}

}  // namespace

EvaluationResult evaluate(const data::Dataset& dataset, const EvaluationPlan& plan,
                          comm::Comm& comm,
                          const std::function<EvaluationOutput(const data::Batch&)>& step) {
  const at::NoGradGuard no_gradients;
  const std::int64_t all = (dataset.size() + plan.batch_size - 1) / plan.batch_size;
  const BatchRange mine = batches_of(comm, limited(plan.limit, all));
  std::vector<EvaluationOutput> outputs;
  for (std::int64_t batch = mine.first; batch < mine.last; ++batch) {
    outputs.push_back(step(load(dataset, batch, plan.batch_size)));
  }
  EvaluationResult result;
  double loss_sum = 0;
  const std::vector<std::uint8_t> bytes = to_bytes(outputs);
  // Rank order is batch order: each rank has a contiguous block.
  for (const auto& part : comm.all_gather_bytes(std::as_bytes(std::span(bytes)))) {
    merge(part, &loss_sum, &result);
  }
  if (result.count == 0) return result;
  const auto count = static_cast<double>(result.count);
  result.loss = loss_sum / count;
  for (const auto& [name, value] : result.counts) {
    result.metrics[name] = static_cast<double>(value) / count;
  }
  return result;
}

}  // namespace lrun::loop
