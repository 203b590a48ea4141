#include "trainer/data/elastic_sampler.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace lrun::data {
namespace {

// Enough for a permutation that no statistical test of a shuffle tells from a random one (Luby and
// Rackoff 1988 need four rounds of a good round function).
constexpr int kFeistelRounds = 6;

std::uint64_t finalise(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15U;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31);
}

void require_positive(std::int64_t value, const char* name) {
  if (value < 1) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                "; it must be at least 1");
  }
}

// A permutation of [0, 4^half_bits), keyed.
std::uint64_t feistel(std::uint64_t value, int half_bits, std::uint64_t key) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits;
  std::uint64_t right = value & mask;
  for (int round = 0; round < kFeistelRounds; ++round) {
    const std::uint64_t swapped = right;
    right = left ^ (mix(key, static_cast<std::uint64_t>(round), right) & mask);
    left = swapped;
  }
  return (left << half_bits) | right;
}

}  // namespace

std::uint64_t mix(std::uint64_t seed, std::uint64_t first, std::uint64_t second) {
  return finalise(finalise(finalise(seed) ^ first) ^ second);
}

ElasticSampler::ElasticSampler(Options options) : options_(options) {
  require_positive(options_.samples, "number of samples");
  require_positive(options_.leaves, "leaves");
  require_positive(options_.leaf_size, "leaf_size");
  const auto samples = static_cast<std::uint64_t>(options_.samples);
  while ((std::uint64_t{1} << (2 * half_bits_)) < samples) ++half_bits_;
}

std::int64_t ElasticSampler::sample_at(std::int64_t epoch, std::int64_t index) const {
  if (!options_.shuffle) return index;
  const std::uint64_t key =
      mix(options_.seed, 0x6f72646572U /* "order" */, static_cast<std::uint64_t>(epoch));
  // Cycle walking: the network permutes a domain of at most four times the size; repeating it until
  // the value falls inside gives a permutation of [0, samples).
  auto value = static_cast<std::uint64_t>(index);
  do {
    value = feistel(value, half_bits_, key);
  } while (value >= static_cast<std::uint64_t>(options_.samples));
  return static_cast<std::int64_t>(value);
}

std::vector<std::int64_t> ElasticSampler::leaf(Position position, int leaf) const {
  const std::int64_t batch_end = position.consumed + batch_size(position);
  const std::int64_t begin = position.consumed + std::int64_t{leaf} * options_.leaf_size;
  const std::int64_t end = std::min(begin + options_.leaf_size, batch_end);
  std::vector<std::int64_t> samples;
  for (std::int64_t index = begin; index < end; ++index) {
    samples.push_back(sample_at(position.epoch, index));
  }
  return samples;
}

std::int64_t ElasticSampler::batch_size(Position position) const {
  return std::min(full_batch(), samples_per_epoch() - position.consumed);
}

Position ElasticSampler::after(Position position) const {
  const std::int64_t consumed = position.consumed + batch_size(position);
  if (consumed >= samples_per_epoch()) return {.epoch = position.epoch + 1, .consumed = 0};
  return {.epoch = position.epoch, .consumed = consumed};
}

std::int64_t ElasticSampler::batch_index(Position position) const {
  return position.consumed / full_batch();
}

std::int64_t ElasticSampler::batches_per_epoch() const {
  const std::int64_t all = (options_.samples + full_batch() - 1) / full_batch();
  return options_.batches_per_epoch > 0 ? std::min(options_.batches_per_epoch, all) : all;
}

std::int64_t ElasticSampler::samples_per_epoch() const {
  return std::min(options_.samples, batches_per_epoch() * full_batch());
}

std::int64_t ElasticSampler::full_batch() const {
  return std::int64_t{options_.leaves} * options_.leaf_size;
}

}  // namespace lrun::data
