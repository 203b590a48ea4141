#include "trainer/comm/group_comm.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace lrun::comm {
namespace {

// FNV-1a over the borders: ranks that pass other ranges find out before payload moves.
std::uint64_t fingerprint(std::span<const Range> shards) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::int64_t border) {
    hash = (hash ^ static_cast<std::uint64_t>(border)) * 0x100000001b3;
  };
  for (const Range& shard : shards) {
    add(shard.begin);
    add(shard.end);
  }
  return hash;
}

std::unique_ptr<Operation> make_operation(OperationKind kind, std::int64_t elements,
                                          int element_bytes, std::span<const Range> shards) {
  auto operation = std::make_unique<Operation>();
  operation->collective = {.kind = kind,
                           .elements = elements,
                           .element_bytes = element_bytes,
                           .shards = {shards.begin(), shards.end()}};
  operation->header.kind = kind;
  operation->header.elements = elements;
  operation->header.element_bytes = element_bytes;
  operation->header.shards = fingerprint(shards);
  return operation;
}

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

}  // namespace

GroupComm::GroupComm(const Options& options, std::vector<Peer> peers, Doorbell doorbell)
    : rank_(options.rank),
      world_size_(options.world_size),
      engine_(options.rank, options.deadline, std::move(peers), std::move(doorbell)) {}

Handle GroupComm::reduce_scatter(std::span<const SubtreeSum> mine, int leaves,
                                 std::span<const Range> shards, std::span<float> result) {
  const Range shard = shard_of(shards);
  require(static_cast<std::int64_t>(result.size()) == shard.size(),
          "reduce_scatter: the result has " + std::to_string(result.size()) +
              " elements, this rank's range " + std::to_string(shard.size()));
  auto operation = make_operation(OperationKind::ReduceScatter, shards.back().end,
                                  static_cast<int>(sizeof(float)), shards);
  operation->result = std::as_writable_bytes(result).data();
  operation->result_begin = shard.begin;
  add_reduction(*operation, mine, leaves);
  return issue(std::move(operation));
}

Handle GroupComm::all_gather(std::span<float> whole, std::span<const Range> shards) {
  return gather(std::as_writable_bytes(whole), shards, static_cast<int>(sizeof(float)));
}

Handle GroupComm::all_reduce(std::span<const SubtreeSum> mine, int leaves,
                             std::span<float> result) {
  const auto elements = static_cast<std::int64_t>(result.size());
  auto operation =
      make_operation(OperationKind::AllReduce, elements, static_cast<int>(sizeof(float)),
                     even_shards(elements, world_size_));
  operation->result = std::as_writable_bytes(result).data();
  add_reduction(*operation, mine, leaves);
  return issue(std::move(operation));
}

// Short messages travel in one operation together with their sizes.
std::vector<std::vector<std::byte>> GroupComm::all_gather_bytes(std::span<const std::byte> mine) {
  std::vector<Note> notes(static_cast<std::size_t>(world_size_));
  Note& my_note = notes[static_cast<std::size_t>(rank_.value)];
  my_note.size = static_cast<std::int64_t>(mine.size());
  std::copy_n(mine.begin(), std::min(mine.size(), my_note.bytes.size()), my_note.bytes.begin());
  gather(std::as_writable_bytes(std::span(notes)), even_shards(world_size_, world_size_),
         static_cast<int>(sizeof(Note)))
      .wait();
  const bool all_fit = std::all_of(notes.begin(), notes.end(), [](const Note& note) {
    return note.size <= static_cast<std::int64_t>(note.bytes.size());
  });
  if (!all_fit) return gather_long(mine, notes);
  std::vector<std::vector<std::byte>> gathered;
  for (const Note& note : notes) {
    gathered.emplace_back(note.bytes.begin(), note.bytes.begin() + note.size);
  }
  return gathered;
}

std::vector<std::vector<std::byte>> GroupComm::gather_long(std::span<const std::byte> mine,
                                                           std::span<const Note> notes) {
  std::vector<Range> shards;
  for (const Note& note : notes) {
    const std::int64_t begin = shards.empty() ? 0 : shards.back().end;
    shards.push_back({begin, begin + note.size});
  }
  std::vector<std::byte> whole(static_cast<std::size_t>(shards.back().end));
  std::copy(mine.begin(), mine.end(), whole.begin() + shard_of(shards).begin);
  gather(whole, shards, 1).wait();
  std::vector<std::vector<std::byte>> gathered;
  for (const Range& shard : shards) {
    gathered.emplace_back(whole.begin() + shard.begin, whole.begin() + shard.end);
  }
  return gathered;
}

void GroupComm::broadcast(std::span<std::byte> bytes, GlobalRank root) {
  require(root.value >= 0 && root.value < world_size_,
          "broadcast: root " + std::to_string(root.value) + " is no rank of a world of " +
              std::to_string(world_size_));
  auto operation =
      make_operation(OperationKind::Broadcast, static_cast<std::int64_t>(bytes.size()), 1, {});
  operation->collective.root = root;
  operation->header.root = root.value;
  operation->result = bytes.data();
  issue(std::move(operation)).wait();
}

void GroupComm::barrier() { issue(make_operation(OperationKind::Barrier, 0, 1, {})).wait(); }

// This rank's range, after all have been checked.
Range GroupComm::shard_of(std::span<const Range> shards) const {
  require(static_cast<int>(shards.size()) == world_size_,
          "there are " + std::to_string(shards.size()) + " ranges for " +
              std::to_string(world_size_) + " ranks");
  std::int64_t end = 0;
  for (const Range& shard : shards) {
    require(shard.begin == end && shard.end >= shard.begin,
            "the ranges of the ranks do not follow each other from 0");
    end = shard.end;
  }
  return shards[static_cast<std::size_t>(rank_.value)];
}

void GroupComm::add_reduction(Operation& operation, std::span<const SubtreeSum> mine,
                              int leaves) const {
  require(leaves >= 1, "a reduction needs at least one leaf");
  std::vector<Subtree> terms;
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto subtrees =
        complete_subtrees(block_of(GlobalRank{rank}, world_size_, leaves), leaves);
    operation.collective.subtrees.push_back(static_cast<int>(subtrees.size()));
    if (rank == rank_.value) {
      require(std::equal(mine.begin(), mine.end(), subtrees.begin(), subtrees.end(),
                         [](const SubtreeSum& a, const Subtree& b) { return a.subtree == b; }),
              "the sums are not those of this rank's complete subtrees, in leaf order");
    }
    terms.insert(terms.end(), subtrees.begin(), subtrees.end());
  }
  for (const SubtreeSum& term : mine) {
    require(static_cast<std::int64_t>(term.values.size()) == operation.collective.elements,
            "a subtree's sum has " + std::to_string(term.values.size()) + " elements, the buffer " +
                std::to_string(operation.collective.elements));
    operation.mine.push_back(term.values.data());
  }
  operation.sum.emplace(terms, leaves);
  operation.header.leaves = leaves;
}

Handle GroupComm::gather(std::span<std::byte> whole, std::span<const Range> shards,
                         int element_bytes) {
  shard_of(shards);
  const std::int64_t elements = shards.back().end;
  require(static_cast<std::int64_t>(whole.size()) == elements * element_bytes,
          "all_gather: the buffer has " + std::to_string(whole.size()) + " bytes, the ranges " +
              std::to_string(elements * element_bytes));
  auto operation = make_operation(OperationKind::AllGather, elements, element_bytes, shards);
  operation->result = whole.data();
  return issue(std::move(operation));
}

Handle GroupComm::issue(std::unique_ptr<Operation> operation) {
  operation->header.sequence = issued_++;
  auto completion = operation->completion;
  engine_.submit(std::move(operation));
  return Handle(std::move(completion));
}

}  // namespace lrun::comm
