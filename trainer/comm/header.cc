#include "trainer/comm/header.h"

namespace lrun::comm {
namespace {

std::string to_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::ReduceScatter:
      return "reduce_scatter";
    case OperationKind::AllGather:
      return "all_gather";
    case OperationKind::AllReduce:
      return "all_reduce";
    case OperationKind::Broadcast:
      return "broadcast";
    case OperationKind::Barrier:
      return "barrier";
  }
  return "operation of unknown kind " + std::to_string(static_cast<std::uint32_t>(kind));
}

}  // namespace

std::string describe(const OperationHeader& header) {
  std::string text = to_name(header.kind);
  if (header.kind == OperationKind::Barrier) return text;
  text += " of " + std::to_string(header.elements) + " elements of " +
          std::to_string(header.element_bytes) + " bytes";
  if (header.leaves > 0) text += " over " + std::to_string(header.leaves) + " leaves";
  if (header.kind == OperationKind::Broadcast) text += " from rank " + std::to_string(header.root);
  return text;
}

std::optional<std::string> find_mismatch(const OperationHeader& mine, GlobalRank my_rank,
                                         const OperationHeader& theirs, GlobalRank their_rank) {
  if (mine == theirs) return std::nullopt;
  const std::string they = "rank " + std::to_string(their_rank.value);
  if (theirs.magic != mine.magic) return they + " sent something that is no operation header";
  std::string text = "operation " + std::to_string(mine.sequence) + " differs: rank " +
                     std::to_string(my_rank.value) + " called " + describe(mine) + ", " + they +
                     " called " + describe(theirs);
  if (theirs.sequence != mine.sequence) {
    text += " as its operation " + std::to_string(theirs.sequence);
  } else if (describe(mine) == describe(theirs)) {
    text += " with other ranges for the ranks";
  }
  return text;
}

}  // namespace lrun::comm
