// Measures all_reduce between ranks of one machine, each a thread with a Comm of its own, over
// shared memory and over TCP on loopback, beside one thread's memcpy of the same size.
//
//   bench-comm [ranks]        prints one JSON object a line
//
// Wall time is of the slowest rank; CPU time is of all ranks together.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/comm/memory_bootstrap.h"

namespace {

using namespace lrun;
using Clock = std::chrono::steady_clock;

constexpr int kLeaves = 4;
constexpr std::int64_t kBytesMax = 64 << 20;
// Each size moves about this many bytes a repetition, within the limits of iterations.
constexpr std::int64_t kBytesPerRepetition = 256 << 20;
constexpr int kIterationsMax = 3000;
constexpr int kIterationsMin = 5;
constexpr int kRepetitions = 5;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int iterations_for(std::int64_t bytes) {
  return static_cast<int>(
      std::clamp<std::int64_t>(kBytesPerRepetition / bytes, kIterationsMin, kIterationsMax));
}

struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;
};

void print(const char* operation, const char* transport, int ranks, std::int64_t bytes,
           std::vector<Sample> samples) {
  // The median: one disturbed repetition does not count.
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
  const Sample& median = samples[samples.size() / 2];
  std::printf(
      "{\"operation\": \"%s\", \"transport\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
      "\"microseconds\": %.2f, \"gigabytes_per_second\": %.3f, "
      "\"cpu_microseconds\": %.2f}\n",
      operation, transport, ranks, static_cast<long long>(bytes), median.seconds * 1e6,
      static_cast<double>(bytes) / median.seconds * 1e-9, median.cpu_seconds * 1e6);
  std::fflush(stdout);
}

// One rank's part; rank 0 returns the samples.
std::vector<Sample> measure(comm::Comm& comm, std::int64_t bytes) {
  const auto elements = static_cast<std::size_t>(bytes) / sizeof(float);
  std::vector<float> values(elements, 1.0f);
  std::vector<float> result(elements);
  const auto block = comm::block_of(comm.rank(), comm.world_size(), kLeaves);
  std::vector<comm::SubtreeSum> mine;
  for (const comm::Subtree& subtree : comm::complete_subtrees(block, kLeaves)) {
    mine.push_back({subtree, values});
  }
  const int iterations = iterations_for(bytes);
  std::vector<Sample> samples;
  for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
    comm.barrier();
    const auto start = Clock::now();
    const double cpu_start = cpu_seconds();
    for (int i = 0; i < iterations; ++i) comm.all_reduce(mine, kLeaves, result).wait();
    comm.barrier();
    const std::chrono::duration<double> took = Clock::now() - start;
    // The first one warms up.
    if (repetition == 0) continue;
    samples.push_back({took.count() / iterations, (cpu_seconds() - cpu_start) / iterations});
  }
  return samples;
}

void run_rank(int rank, int ranks, bool use_shared_memory, comm::Bootstrap& bootstrap) {
  const auto comm = comm::Comm::connect({.rank = {rank},
                                         .world_size = ranks,
                                         .generation = {1, 1},
                                         .host = "127.0.0.1",
                                         .node = "here",
                                         .use_shared_memory = use_shared_memory},
                                        &bootstrap);
  for (std::int64_t bytes = 4 << 10; bytes <= kBytesMax; bytes *= 4) {
    auto samples = measure(*comm, bytes);
    if (rank == 0) {
      print("all_reduce", use_shared_memory ? "shared memory" : "tcp", ranks, bytes, samples);
    }
  }
}

void measure_memcpy() {
  const std::vector<char> from(kBytesMax, 'x');
  std::vector<char> to(kBytesMax);
  std::vector<Sample> samples;
  for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
    const auto start = Clock::now();
    const double cpu_start = cpu_seconds();
    for (int i = 0; i < kIterationsMin; ++i) {
      std::memcpy(to.data(), from.data(), from.size());
      // The copy is looked at, else it would not be made.
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    samples.push_back(
        {took.count() / kIterationsMin, (cpu_seconds() - cpu_start) / kIterationsMin});
  }
  print("memcpy", "none", 1, kBytesMax, samples);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 1 || ranks > kLeaves) {
    std::fprintf(stderr, "bench-comm: '%s' ranks; accepted: 1 to %d\n", argv[1], kLeaves);
    return 2;
  }
  measure_memcpy();
  for (const bool use_shared_memory : {true, false}) {
    comm::MemoryBootstrap bootstrap;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] { run_rank(rank, ranks, use_shared_memory, bootstrap); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return 0;
}
