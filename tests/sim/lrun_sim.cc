// lrun-sim: the whole job in a simulated world, seed after seed.
//
//   lrun-sim --seeds N [--first-seed S]   many seeds; prints rate, faults by kind, failures
//   lrun-sim --seed S [--verbose]         one seed, twice (the two logs must be equal); its log
//
// Exit 0: all well; 1: a seed failed (it is named, with the command that replays it); 2: usage.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/sim/simulation.h"

namespace lrun::sim {
namespace {

constexpr int kFailuresShownMax = 5;

struct Options {
  std::uint64_t seeds = 1000;
  std::uint64_t first_seed = 1;
  std::optional<std::uint64_t> seed;
  bool verbose = false;
};

int usage(const std::string& complaint) {
  std::fprintf(
      stderr, "lrun-sim: %s; usage: lrun-sim [--seeds N] [--first-seed S] | --seed S [--verbose]\n",
      complaint.c_str());
  return 2;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void print_failure(std::uint64_t seed, const SimulationResult& result) {
  std::printf("seed %llu failed:\n", static_cast<unsigned long long>(seed));
  for (const std::string& violation : result.violations) std::printf("  %s\n", violation.c_str());
  std::printf("  replay: lrun-sim --seed %llu --verbose\n", static_cast<unsigned long long>(seed));
}

int run_one(const Options& options) {
  const SimulationResult first = simulate(*options.seed, options.verbose);
  const SimulationResult second = simulate(*options.seed, options.verbose);
  for (const std::string& line : first.log) std::printf("%s\n", line.c_str());
  std::printf("seed %llu: %.1f s of virtual time, %zu generations, log hash %016llx\n",
              static_cast<unsigned long long>(*options.seed),
              std::chrono::duration<double>(first.virtual_time).count(), first.generations,
              static_cast<unsigned long long>(first.log_hash));
  if (first.log_hash != second.log_hash) {
    std::printf("the second run of this seed has another log: %016llx\n",
                static_cast<unsigned long long>(second.log_hash));
    return 1;
  }
  if (first.violations.empty()) return 0;
  print_failure(*options.seed, first);
  return 1;
}

int run_many(const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  std::map<std::string, std::int64_t> counts;
  std::uint64_t failures = 0;
  double virtual_seconds = 0;
  std::size_t generations = 0;
  for (std::uint64_t index = 0; index < options.seeds; ++index) {
    const std::uint64_t seed = options.first_seed + index;
    const SimulationResult result = simulate(seed, false);
    for (const World::Count& entry : result.counts) counts[entry.name] += entry.count;
    virtual_seconds += std::chrono::duration<double>(result.virtual_time).count();
    generations += result.generations;
    if (!result.violations.empty() && ++failures <= kFailuresShownMax) print_failure(seed, result);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf(
      "%llu seeds in %.1f s (%.0f a second): %llu failed; %.0f s of virtual time, %zu "
      "generations\n",
      static_cast<unsigned long long>(options.seeds), seconds,
      static_cast<double>(options.seeds) / seconds, static_cast<unsigned long long>(failures),
      virtual_seconds, generations);
  for (const auto& [name, count] : counts) {
    std::printf("  %-26s %lld\n", name.c_str(), static_cast<long long>(count));
  }
  return failures == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; ++at) {
    const std::string_view name = argv[at];
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (name != "--seeds" && name != "--first-seed" && name != "--seed") {
      return usage("unknown option '" + std::string(name) + "'");
    }
    const auto value = at + 1 < argc ? number(argv[at + 1]) : std::nullopt;
    if (!value) return usage(std::string(name) + " needs a number");
    ++at;
    if (name == "--seeds") options.seeds = *value;
    if (name == "--first-seed") options.first_seed = *value;
    if (name == "--seed") options.seed = *value;
  }
  return options.seed ? run_one(options) : run_many(options);
}

}  // namespace
}  // namespace lrun::sim

int main(int argc, char** argv) { return lrun::sim::run(argc, argv); }
