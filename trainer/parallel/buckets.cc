#include "trainer/parallel/buckets.h"

#include <algorithm>

namespace lrun::parallel {

std::vector<Bucket> make_buckets(const FlatLayout& layout, std::int64_t bytes_max) {
  constexpr std::int64_t kElementBytes = sizeof(float);
  std::vector<Bucket> buckets;
  std::int64_t end = layout.elements;
  Bucket open{{end, end}, {}};
  for (std::size_t i = layout.slots.size(); i-- > 0;) {
    const std::int64_t limit = buckets.empty() ? std::min(kFirstBucketBytes, bytes_max) : bytes_max;
    const std::int64_t begin = layout.slots[i].offset;
    const bool is_full = (open.range.end - begin) * kElementBytes > limit;
    if (is_full && !open.slots.empty()) {
      buckets.push_back(std::move(open));
      open = {{buckets.back().range.begin, buckets.back().range.begin}, {}};
    }
    open.range.begin = begin;
    open.slots.push_back(i);
  }
  if (!open.slots.empty()) buckets.push_back(std::move(open));
  return buckets;
}

std::vector<comm::Range> shards_within(comm::Range range, const std::vector<comm::Range>& shards) {
  std::vector<comm::Range> parts;
  parts.reserve(shards.size());
  for (const comm::Range& shard : shards) {
    parts.push_back({std::clamp(shard.begin, range.begin, range.end) - range.begin,
                     std::clamp(shard.end, range.begin, range.end) - range.begin});
  }
  return parts;
}

BucketGate::BucketGate(const std::vector<Bucket>& buckets, std::size_t slots) : bucket_of_(slots) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (const std::size_t slot : buckets[bucket].slots) bucket_of_[slot] = bucket;
    slots_in_.push_back(buckets[bucket].slots.size());
  }
  reset();
}

void BucketGate::reset() {
  missing_ = slots_in_;
  released_ = 0;
}

void BucketGate::complete(std::size_t slot) { --missing_[bucket_of_[slot]]; }

bool BucketGate::take_next() {
  if (released_ == missing_.size() || missing_[released_] > 0) return false;
  ++released_;
  return true;
}

}  // namespace lrun::parallel
