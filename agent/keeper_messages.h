// What agent and keeper say to each other: one sequenced packet each, of fixed size.
//
// Owns the packets and the payload of a spawn (a memory file passed with it, so that packets stay
// small whatever the environment). Refuses to know what is done with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace lrun::agent {

// Names one started worker between agent and keeper; never reused by an agent.
using WorkerSerial = std::uint32_t;

// The descriptor under which a worker finds its channel: one digit, so that every shell can name
// it, and not one of those that shell scripts usually take for themselves (3, 4, 9).
inline constexpr int kChannelDescriptor = 7;
// The kernel's own limit for arguments and environment is far below.
inline constexpr std::size_t kSpawnBytesMax = 8 * 1024 * 1024;

struct SpawnPayload {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"
  // Entries of the environment by which a daemonised descendant is told from other workers'.
  std::vector<std::string> marks;
};

enum class OrderKind : std::uint32_t { Spawn = 1, Signal = 2 };

struct Order {
  OrderKind kind = OrderKind::Spawn;
  WorkerSerial worker = 0;
  std::int32_t signal_number = 0;
};

// Descriptors of a Spawn. Not open: the launcher's own stream.
struct SpawnDescriptors {
  Fd payload;
  Fd stdout_end;
  Fd stderr_end;
  Fd channel;
};

struct ReceivedOrder {
  Order order;
  SpawnDescriptors descriptors;
};

enum class ReportKind : std::uint32_t { Ready = 1, Spawned = 2, SpawnFailed = 3, Exited = 4 };

struct Report {
  ReportKind kind = ReportKind::Ready;
  WorkerSerial worker = 0;
  std::int32_t pid = 0;    // Ready: the keeper's own
  std::int32_t error = 0;  // SpawnFailed: errno
  std::int32_t code = 0;   // Exited: exit code or signal number
  std::uint32_t by_signal = 0;
  std::uint32_t core_dumped = 0;
  std::uint32_t left_behind = 0;  // Exited: processes that outlived SIGKILL's limit
};

enum class Received { Message, Nothing, PeerGone };

// A memory file with the payload. Throws std::system_error.
Fd to_memory_file(const SpawnPayload& payload);
std::optional<SpawnPayload> from_memory_file(const Fd& file);

// False: the peer is gone, or (with errno EAGAIN) cannot take it now. Descriptors stay the
// caller's.
bool send_order(const Fd& connection, const Order& order, const SpawnDescriptors* descriptors);
bool send_report(const Fd& connection, const Report& report);
// Nothing: no packet now, or one of a wrong size, which is skipped.
Received receive_order(const Fd& connection, ReceivedOrder* received);
Received receive_report(const Fd& connection, Report* report);

}  // namespace lrun::agent
