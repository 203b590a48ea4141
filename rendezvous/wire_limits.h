// Every number on which both ends of the wire must agree, in one place. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lrun::rendezvous {

// Of proto/rendezvous.proto. Raised when an older lrun could misread a message.
inline constexpr std::uint32_t kProtocolVersion = 1;

// A request is small; whatever declares more is refused before it is read.
inline constexpr int kRequestBytesMax = 64 * 1024;
// The status of thousands of nodes is the largest reply.
inline constexpr int kReplyBytesMax = 16 * 1024 * 1024;
// Names and values of one call, before any of it is looked at.
inline constexpr int kMetadataBytesMax = 16 * 1024;
// One agent has a handful open at a time.
inline constexpr int kCallsPerConnectionMax = 256;
// All connections together; thousands of agents hold two calls each.
inline constexpr int kOpenCallsMax = 32 * 1024;

inline constexpr std::size_t kNodeNameBytesMax = 255;
inline constexpr std::size_t kRunIdBytesMax = 255;
inline constexpr std::size_t kRoleBytesMax = 64;
inline constexpr std::size_t kAddressBytesMax = 255;
inline constexpr std::size_t kLabelBytesMax = 128;  // each of name and value
inline constexpr int kLabelsMax = 16;
inline constexpr std::size_t kKeyBytesMax = 256;
inline constexpr std::size_t kValueBytesMax = 4096;
inline constexpr std::size_t kStopReasonBytesMax = 256;
inline constexpr int kSlotsMax = 4096;
inline constexpr int kNodesMax = 16 * 1024;
inline constexpr int kRestartsMax = std::numeric_limits<int>::max();

// An idle connection is asked after this time whether it lives, and given up after the second. The
// server accepts pings twice as often as clients send them, so that no client is ever thrown off
// for asking too much.
inline constexpr std::chrono::milliseconds kKeepaliveTime{10'000};
inline constexpr std::chrono::milliseconds kKeepaliveLimit{5'000};
inline constexpr std::chrono::milliseconds kPingIntervalMin = kKeepaliveTime / 2;

// One attempt to connect, the TLS handshake included: a thousand agents that come back at once
// need five seconds.
inline constexpr std::chrono::milliseconds kConnectLimit{6'000};
// A held call's deadline is its hold and this, so that its ending without an answer means
// something.
inline constexpr std::chrono::milliseconds kHoldMargin{5'000};

}  // namespace lrun::rendezvous
