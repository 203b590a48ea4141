// What one rank says to every peer before the payload of an operation, so that ranks that called
// different things find out instead of waiting for each other.
//
// Pure. A fixed record that travels in the byte order of the machine: all workers of a job have the
// same. Written and compared by the communication thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "proto/ids.h"

namespace lrun::comm {

enum class OperationKind : std::uint32_t {
  ReduceScatter,
  AllGather,
  AllReduce,
  Broadcast,
  Barrier
};

struct OperationHeader {
  std::uint64_t magic = 0x4c52554e434f4d31;  // "LRUNCOM1"
  std::uint64_t sequence = 0;                // operations of this Comm before this one
  OperationKind kind = OperationKind::Barrier;
  std::int32_t leaves = 0;  // of the reduction tree; 0 without one
  std::int32_t root = 0;    // of a broadcast
  std::int32_t element_bytes = 0;
  std::int64_t elements = 0;  // of the whole buffer
  std::uint64_t shards = 0;   // fingerprint of the ranks' ranges
  friend bool operator==(const OperationHeader&, const OperationHeader&) = default;
};
static_assert(std::has_unique_object_representations_v<OperationHeader>, "no padding on the wire");

// "all_reduce of 1024 elements of 4 bytes over 8 leaves".
std::string describe(const OperationHeader& header);

// One sentence that names both ranks and what each called; nothing when they agree.
std::optional<std::string> find_mismatch(const OperationHeader& mine, GlobalRank my_rank,
                                         const OperationHeader& theirs, GlobalRank their_rank);

}  // namespace lrun::comm
