// TensorBoard's event files, encoded by hand.
//
// Pure. A file is a sequence of records: u64 length, masked crc32c of the length, bytes, masked
// crc32c of the bytes; each record is a Protobuf message `Event`
// (tensorflow/core/util/event.proto). No Protobuf library: the trainer never links it
// (architecture.md §3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::loop {

// Castagnoli polynomial, RFC 3720 appendix B.4: crc32c("123456789") = 0xe3069283.
std::uint32_t crc32c(std::string_view bytes);
// rotr(crc, 15) + 0xa282ead8, so that a checksum of checksums stays useful.
std::uint32_t masked_crc32c(std::string_view bytes);

// One record with both checksums.
std::string event_record(std::string_view event);
// The first event of every file: Event{wall_time, file_version "brain.Event:2"}.
std::string version_event(double wall_time);
// Event{wall_time, step, summary{value{tag, simple_value} …}}.
std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace lrun::loop
