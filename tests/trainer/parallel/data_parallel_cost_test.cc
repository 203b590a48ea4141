// What a step costs in memory, in bytes on the wire, and in which order it happens.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "tests/trainer/parallel/recording_comm.h"
#include "tests/trainer/parallel/worlds.h"
#include "trainer/comm/tree.h"
#include "trainer/parallel/data_parallel.h"

namespace lrun::parallel {
namespace {

using Names = std::vector<std::string>;

// Layers of `elements` parameters each; the loss of a leaf depends on all of them, in order.
std::vector<std::pair<std::string, at::Tensor>> layers(int count, std::int64_t elements) {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (int i = 0; i < count; ++i) {
    parameters.emplace_back("layer" + std::to_string(i), at::ones({elements}).requires_grad_());
  }
  return parameters;
}

void compute_block(DataParallel& training,
                   const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
    training.begin_leaf(leaf);
    at::Tensor x = at::ones_like(parameters[0].second);
    for (const auto& [name, parameter] : parameters) x = x * parameter;
    x.sum().backward();
    training.end_leaf(leaf, 1, 1);
  }
}

// Bytes of tensors that this thread has allocated and not yet freed, from LibTorch's allocator.
class LiveBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live_ += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t live() const { return live_; }

 private:
  std::int64_t live_ = 0;
};

struct MemoryCase {
  int world_size;
  int leaves;
  int stage;
  double bytes_per_parameter;  // parameters 4, gradients 4, moments 8; + 4 for each gradient buffer
                               // beyond the first
};

class Memory : public testing::TestWithParam<MemoryCase> {};

TEST_P(Memory, LiveBytesAreThoseOfTheFormula) {
  const MemoryCase expected = GetParam();
  constexpr int kLayers = 4;
  constexpr std::int64_t kElements = 300'000;
  run_world(expected.world_size, [&](comm::Comm& comm) {
    const auto counter = std::make_shared<LiveBytes>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
    const auto parameters = layers(kLayers, kElements);
    DataParallel training(parameters, comm,
                          {.leaves = expected.leaves, .zero_stage = expected.stage});
    compute_block(training, parameters);
    training.step(0.1);
    const double formula = expected.bytes_per_parameter * kLayers * kElements;
    EXPECT_NEAR(static_cast<double>(counter->live()), formula, 0.03 * formula);
    EXPECT_NEAR(static_cast<double>(training.buffer_bytes()), formula, 0.03 * formula);
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Memory,
                         testing::Values(MemoryCase{1, 1, 0, 16}, MemoryCase{1, 4, 0, 16 + 4},
                                         MemoryCase{2, 2, 0, 16}, MemoryCase{2, 2, 1, 8 + 8.0 / 2},
                                         MemoryCase{4, 4, 1, 8 + 8.0 / 4}));

// Ranks other than its owner send each element of every subtree sum once; the owner sends the
// updated one to the others. For aligned worlds this is exactly an ordinary reduce-scatter and
// all-gather, 2·(N−1)·P elements in all.
std::int64_t expected_bytes(int world_size, int leaves, const FlatLayout& layout) {
  std::int64_t elements = (world_size - 1) * layout.elements;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto block = comm::block_of(GlobalRank{rank}, world_size, leaves);
    const auto subtrees = static_cast<std::int64_t>(comm::complete_subtrees(block, leaves).size());
    elements += subtrees * (layout.elements - layout.owned_by(GlobalRank{rank}, world_size).size());
  }
  return 4 * elements;
}

TEST(Wire, BytesAreThoseOfTheFormula) {
  for (const int stage : {0, 1}) {
    for (const auto& [world_size, leaves] : {std::pair{2, 4}, {4, 4}, {3, 4}, {3, 12}, {4, 12}}) {
      std::mutex mutex;
      std::uint64_t sent = 0;
      std::int64_t expected = 0;
      run_world(world_size, [&, leaves = leaves, world_size = world_size](comm::Comm& real) {
        RecordingComm comm(real);
        const auto parameters = layers(3, 50'000);
        DataParallel training(parameters, comm,
                              {.leaves = leaves, .zero_stage = stage, .bucket_bytes = 300'000});
        // The totals of a step are a short message, whose framing is the Comm's own affair.
        const std::uint64_t before = comm.counters().sent_bytes - comm.message_bytes();
        compute_block(training, parameters);
        training.step(0.1);
        const std::lock_guard lock(mutex);
        sent += comm.counters().sent_bytes - comm.message_bytes() - before;
        expected = expected_bytes(world_size, leaves, training.layout());
      });
      EXPECT_GT(sent, 0u);
      EXPECT_EQ(sent, static_cast<std::uint64_t>(expected))
          << "world size " << world_size << ", " << leaves << " leaves, stage " << stage;
    }
  }
}

TEST(Wire, AlignedWorldsSendWhatAnOrdinaryReduceScatterSends) {
  const FlatLayout layout = make_layout({{"weight", {64 * kNormBlockElements}}});
  EXPECT_EQ(expected_bytes(4, 4, layout), 2 * 3 * layout.elements * 4);
}

// Notes what happens on rank 0: operations issued, and gradients as autograd computes them.
Names events_of_a_step(int leaves, int stage) {
  Names events;
  run_world(2, [&](comm::Comm& real) {
    RecordingComm comm(real);
    const auto parameters = layers(4, 200'000);
    DataParallel training(parameters, comm,
                          {.leaves = leaves, .zero_stage = stage, .bucket_bytes = 800'000});
    if (real.rank().value == 0) {
      comm.on_issue = [&](const std::string& operation) { events.push_back(operation); };
      for (const auto& [name, parameter] : parameters) {
        parameter.register_hook([&, name = name](const at::Tensor& gradient) {
          events.push_back(name);
          return gradient;
        });
      }
    }
    compute_block(training, parameters);
    if (real.rank().value == 0) events.push_back("step");
    training.step(0.1);
    comm.on_issue = [](const std::string&) {};
  });
  return events;
}

TEST(Overlap, BucketsLeaveWhileBackwardGoesOn) {
  EXPECT_EQ(events_of_a_step(2, 1), (Names{"layer3", "reduce_scatter", "layer2", "reduce_scatter",
                                           "layer1", "reduce_scatter", "layer0", "reduce_scatter",
                                           "step", "all_gather_bytes", "all_gather"}));
  EXPECT_EQ(events_of_a_step(2, 0),
            (Names{"layer3", "all_reduce", "layer2", "all_reduce", "layer1", "all_reduce", "layer0",
                   "all_reduce", "step", "all_gather_bytes"}));
}

TEST(Overlap, EarlierLeavesOnlyAccumulate) {
  EXPECT_EQ(events_of_a_step(4, 1),
            (Names{"layer3", "layer2", "layer1", "layer0", "layer3", "reduce_scatter", "layer2",
                   "reduce_scatter", "layer1", "reduce_scatter", "layer0", "reduce_scatter", "step",
                   "all_gather_bytes", "all_gather"}));
}

TEST(Overlap, AnErrorOfTheCommLeavesBackwardWithItsOwnType) {
  run_world(2, [&](comm::Comm& real) {
    RecordingComm comm(real);
    const auto parameters = layers(2, 1000);
    DataParallel training(parameters, comm, {.leaves = 2, .zero_stage = 1});
    comm.on_issue = [](const std::string&) {
      throw comm::PeerLost("peer 1 is gone", GlobalRank{1});
    };
    EXPECT_THROW(compute_block(training, parameters), comm::PeerLost);
  });
}

}  // namespace
}  // namespace lrun::parallel
