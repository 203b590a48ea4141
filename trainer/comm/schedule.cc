#include "trainer/comm/schedule.h"

#include <algorithm>

namespace lrun::comm {
namespace {

// Sums run this many chunks behind the terms, so that both directions of a link stay busy.
constexpr std::size_t kGatherLag = 1;
// Chunk borders are multiples of a cache line.
constexpr std::int64_t kChunkMultiple = 16;

bool has_reduction(OperationKind kind) {
  return kind == OperationKind::ReduceScatter || kind == OperationKind::AllReduce;
}

std::int64_t chunk_elements(const Collective& collective) {
  int terms = 1;
  for (const int subtrees : collective.subtrees) terms = std::max(terms, subtrees);
  const auto frame = static_cast<std::int64_t>(kFrameBytesMax);
  const std::int64_t fitting = frame / collective.element_bytes / terms;
  return std::max(fitting / kChunkMultiple * kChunkMultiple, std::int64_t{1});
}

std::vector<Range> cut(Range whole, std::int64_t elements) {
  std::vector<Range> chunks;
  for (std::int64_t begin = whole.begin; begin < whole.end; begin += elements) {
    chunks.push_back({begin, std::min(begin + elements, whole.end)});
  }
  return chunks;
}

Range shard_of(const Collective& collective, GlobalRank rank) {
  if (is_one_hop(collective)) return {0, collective.elements};
  return collective.shards[static_cast<std::size_t>(rank.value)];
}

std::vector<Frame> to_frames(Frame::Kind kind, const std::vector<Range>& chunks, bool numbered) {
  std::vector<Frame> frames;
  for (const Range& chunk : chunks) {
    frames.push_back({kind, chunk, numbered ? static_cast<int>(frames.size()) : -1});
  }
  return frames;
}

std::vector<Frame> terms_between(const Collective& collective, GlobalRank from, GlobalRank to) {
  if (collective.subtrees[static_cast<std::size_t>(from.value)] == 0) return {};
  return to_frames(Frame::Kind::Terms, chunks_of(collective, to), true);
}

// terms 0, terms 1, values 0, terms 2, values 1, …: known to both ends without a word.
std::vector<Frame> interleave(const std::vector<Frame>& terms, const std::vector<Frame>& values) {
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < std::max(terms.size(), values.size() + kGatherLag); ++i) {
    if (i < terms.size()) frames.push_back(terms[i]);
    if (i >= kGatherLag && i - kGatherLag < values.size()) frames.push_back(values[i - kGatherLag]);
  }
  return frames;
}

}  // namespace

bool is_one_hop(const Collective& collective) {
  return collective.kind == OperationKind::AllReduce &&
         collective.elements * collective.element_bytes <= kSmallBytesMax &&
         collective.elements <= chunk_elements(collective);
}

std::vector<Range> chunks_of(const Collective& collective, GlobalRank rank) {
  if (!has_reduction(collective.kind)) return {};
  return cut(shard_of(collective, rank), chunk_elements(collective));
}

std::vector<Frame> frames_between(const Collective& collective, GlobalRank from, GlobalRank to) {
  switch (collective.kind) {
    case OperationKind::ReduceScatter:
      return terms_between(collective, from, to);
    case OperationKind::AllGather:
      return to_frames(Frame::Kind::Values,
                       cut(shard_of(collective, from), chunk_elements(collective)), false);
    case OperationKind::AllReduce: {
      const auto terms = terms_between(collective, from, to);
      if (is_one_hop(collective)) return terms;
      return interleave(terms, to_frames(Frame::Kind::Values, chunks_of(collective, from), true));
    }
    case OperationKind::Broadcast:
      if (from != collective.root) return {};
      return to_frames(Frame::Kind::Values,
                       cut({0, collective.elements}, chunk_elements(collective)), false);
    case OperationKind::Barrier:
      return {};
  }
  return {};
}

}  // namespace lrun::comm
