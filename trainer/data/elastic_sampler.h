// Which samples each leaf of each global batch sees: arithmetic on (seed, epoch, index).
//
// Pure. The order of an epoch is a permutation that is computed, never stored (a Feistel network
// with cycle walking), so any rank of any world size finds any sample in constant time, and a
// resumed run needs nothing but a Position. Refuses to know what a sample is.
//
//   epoch 0:  | leaf 0 | leaf 1 | … | leaf K−1 | leaf 0 | …            | leaf 0 | le |
//             '-------- global batch ----------'                       '- the last one is
//                                                                          short, never padded
#pragma once

#include <cstdint>
#include <vector>

namespace lrun::data {

// How far training has come: `consumed` samples of `epoch` went into completed optimizer steps.
// Prefetched samples do not count. The end of an epoch is always {epoch + 1, 0}.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t consumed = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

class ElasticSampler {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::int64_t samples = 0;            // size of the data set, at least 1
    int leaves = 1;                      // K
    int leaf_size = 1;                   // samples of a full leaf
    std::int64_t batches_per_epoch = 0;  // stop an epoch after this many global batches; 0: all
    bool shuffle = true;
  };
  // Throws std::invalid_argument when a count is not positive.
  explicit ElasticSampler(Options options);

  // The `index`-th sample of an epoch's order; `index` in [0, samples).
  std::int64_t sample_at(std::int64_t epoch, std::int64_t index) const;

  // Samples of one leaf of the global batch that starts at `position`: `leaf_size` of them, fewer
  // or none only in the last batch of an epoch.
  std::vector<std::int64_t> leaf(Position position, int leaf) const;

  // Samples in the global batch that starts at `position`.
  std::int64_t batch_size(Position position) const;
  // Where the next global batch starts.
  Position after(Position position) const;
  // Index of the global batch within its epoch.
  std::int64_t batch_index(Position position) const;

  std::int64_t batches_per_epoch() const;
  std::int64_t samples_per_epoch() const;
  const Options& options() const { return options_; }

 private:
  std::int64_t full_batch() const;

  Options options_;
  int half_bits_ = 1;  // the Feistel network permutes [0, 4^half_bits), the power above `samples`
};

// Mixes words into one of 64 well spread bits (finaliser of splitmix64, Steele et al. 2014). Seeds
// of leaves and epochs derive from it.
std::uint64_t mix(std::uint64_t seed, std::uint64_t first, std::uint64_t second);

}  // namespace lrun::data
