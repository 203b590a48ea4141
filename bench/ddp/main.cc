// CPU time and rate of data-parallel training with AdamW, ranks as processes of this machine, one
// compute thread each.
//
//   bench-ddp [--models cnn,mlp,encoder] [--ranks 2] [--leaves 4] [--stages 0,1] [--blocks 5]
//             [--steps 10]
//
// Prints, for each model and stage, one JSON line for steps per second of rank 0 and one for CPU
// milliseconds per step of all ranks together, over blocks of `steps` steps; first a line that says
// under which arithmetic. Compare with PyTorch's DistributedDataParallel and
// ZeroRedundancyOptimizer on the same machine at the same time only.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/ddp/models.h"
#include "tests/trainer/parallel/worlds.h"
#include "trainer/parallel/data_parallel.h"
#include "trainer/parallel/determinism.h"
#include "trainer/parallel/process_memory.h"

namespace lrun::bench {
namespace {

struct Run {
  std::string model;
  int ranks = 2;
  int leaves = 4;
  int stage = 0;
  int blocks = 5;
  int steps = 10;
};

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void train_step(parallel::DataParallel& training, const Workload& workload) {
  for (int leaf = training.block().first; leaf < training.block().last; ++leaf) {
    training.begin_leaf(leaf);
    const at::Tensor loss = workload.loss_sum();
    loss.backward();
    training.end_leaf(leaf, loss.item<float>(), workload.leaf_samples);
  }
  training.step(1e-4);
}

// One rank: "rate cpu_ms" of each block.
std::string measure(const Run& run, comm::Comm& comm) {
  parallel::keep_freed_memory();
  const Workload workload = make_workload(run.model, run.leaves / run.ranks);
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& item : workload.model->named_parameters()) {
    parameters.emplace_back(item.key(), item.value());
  }
  parallel::DataParallel training(parameters, comm,
                                  {.leaves = run.leaves, .zero_stage = run.stage});
  for (int i = 0; i < 3; ++i) train_step(training, workload);
  std::ostringstream text;
  for (int block = 0; block < run.blocks; ++block) {
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    for (int i = 0; i < run.steps; ++i) train_step(training, workload);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    text << run.steps / wall.count() << ' ' << (cpu_seconds() - cpu) / run.steps * 1e3 << ' ';
  }
  return text.str();
}

nlohmann::ordered_json line(const std::string& bench, const Run& run, const std::string& unit,
                            std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::string mode = (run.stage == 0 ? "adamw" : "zero") + std::to_string(run.ranks);
  return {
      {"bench", bench},
      {"peer", "lrun"},
      {"params", {{"model", run.model}, {"mode", mode}, {"ranks", run.ranks}, {"dtype", "fp32"}}},
      {"unit", unit},
      {"median", values[values.size() / 2]},
      {"min", values.front()},
      {"max", values.back()},
      {"runs", values.size()},
      {"leaves", run.leaves}};
}

void print(const Run& run) {
  const auto texts =
      parallel::run_processes(run.ranks, [&](comm::Comm& comm) { return measure(run, comm); });
  std::vector<double> rates(static_cast<std::size_t>(run.blocks));
  std::vector<double> cpu(rates.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream text(texts[rank]);
    for (std::size_t block = 0; block < rates.size(); ++block) {
      double rate = 0;
      double cpu_ms = 0;
      text >> rate >> cpu_ms;
      if (rank == 0) rates[block] = rate;
      cpu[block] += cpu_ms;
    }
  }
  std::cout << line("train.steps", run, "steps/s", rates) << '\n'
            << line("train.cpu", run, "CPU ms/step", cpu) << std::endl;
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> all;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) all.push_back(word);
  return all;
}

void run_all(int count, char** arguments) {
  std::map<std::string, std::string> options{{"--models", "cnn,mlp,encoder"},
                                             {"--ranks", "2"},
                                             {"--leaves", "4"},
                                             {"--stages", "0,1"},
                                             {"--blocks", "5"},
                                             {"--steps", "10"}};
  for (int i = 1; i + 1 < count; i += 2) options.at(arguments[i]) = arguments[i + 1];
  Run run{.model = "",
          .ranks = std::stoi(options["--ranks"]),
          .leaves = std::stoi(options["--leaves"]),
          .stage = 0,
          .blocks = std::stoi(options["--blocks"]),
          .steps = std::stoi(options["--steps"])};
  // The arithmetic is asked for in a process of its own: this one must not use LibTorch.
  std::cout << parallel::run_processes(1, [](comm::Comm&) {
    return nlohmann::json(parallel::arithmetic_identity()).dump();
  })[0] << std::endl;
  for (const std::string& model : words(options["--models"])) {
    for (const std::string& stage : words(options["--stages"])) {
      run.model = model;
      run.stage = std::stoi(stage);
      print(run);
    }
  }
}

}  // namespace
}  // namespace lrun::bench

int main(int count, char** arguments) {
  try {
    lrun::bench::run_all(count, arguments);
    return 0;
  } catch (const std::out_of_range&) {
    std::cerr << "bench-ddp: unknown option; see the top of bench/ddp/main.cc\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "bench-ddp: " << error.what() << '\n';
    return 1;
  }
}
