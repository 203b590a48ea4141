#include "trainer/parallel/gradient_reducer.h"

#include <c10/util/Exception.h>

#include <span>

namespace lrun::parallel {

GradientReducer::GradientReducer(const FlatLayout& layout, LeafSums& sums, comm::Comm& comm,
                                 const Plan& plan)
    : sums_(sums),
      comm_(comm),
      plan_(plan),
      shards_(layout.shards(comm.world_size())),
      buckets_(make_buckets(layout, plan.bucket_bytes)),
      gate_(buckets_, layout.slots.size()) {
  under_way_.reserve(buckets_.size());
}

void GradientReducer::complete(std::size_t slot) {
  gate_.complete(slot);
  while (gate_.take_next()) issue(buckets_[gate_.released() - 1]);
}

void GradientReducer::finish() {
  TORCH_CHECK(gate_.released() == buckets_.size(), "a bucket of gradients was never complete");
  for (Sending& sending : under_way_) sending.handle.wait();
  under_way_.clear();
  gate_.reset();
}

void GradientReducer::issue(const Bucket& bucket) {
  if (comm_.world_size() == 1) return;  // the block is the whole tree: its sum is the result
  const auto part = [&](std::size_t subtree, comm::Range range) {
    return std::span(sums_.sum(subtree).data_ptr<float>() + range.begin,
                     static_cast<std::size_t>(range.size()));
  };
  Sending& sending = under_way_.emplace_back();
  for (std::size_t i = 0; i < sums_.plan().subtrees.size(); ++i) {
    sending.mine.push_back({sums_.plan().subtrees[i], part(i, bucket.range)});
  }
  switch (plan_.reduction) {
    case Reduction::EveryRank:
      sending.handle = comm_.all_reduce(sending.mine, plan_.leaves, part(0, bucket.range));
      return;
    case Reduction::Owner:
      sending.shards = shards_within(bucket.range, shards_);
      const comm::Range own = sending.shards[static_cast<std::size_t>(comm_.rank().value)];
      const comm::Range result{bucket.range.begin + own.begin, bucket.range.begin + own.end};
      sending.handle =
          comm_.reduce_scatter(sending.mine, plan_.leaves, sending.shards, part(0, result));
      return;
  }
}

}  // namespace lrun::parallel
