// What the agent asks of the machine: a port of its own, the kernel's memory killer, the process
// tree.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/memory_kills.h"
#include "agent/port_reservation.h"
#include "base/fd.h"
#include "tests/agent/io_support.h"

namespace lrun::agent {
namespace {

using testing::TemporaryFolder;

// Binds `port` on the wildcard address; 0 when that was possible, else errno.
int try_to_listen(int family, int port, bool has_reuse, Fd* listener = nullptr) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = has_reuse ? 1 : 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  sockaddr_storage address{};
  socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  address.ss_family = static_cast<sa_family_t>(family);
  reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<in_port_t>(port));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return errno;
  if (::listen(socket.get(), 16) != 0) return errno;
  if (listener) *listener = std::move(socket);
  return 0;
}

bool has_ipv6() { return Fd(::socket(AF_INET6, SOCK_STREAM, 0)).is_open(); }

// B014, and torchrun's section 3.5: a worker can listen on it, others are not given it.
TEST(PortReservationIoTest, AWorkerCanListenAndNobodyElseGetsIt) {
  const PortReservation reservation;
  ASSERT_GT(reservation.port(), 0);
  EXPECT_EQ(try_to_listen(AF_INET, reservation.port(), false), EADDRINUSE);
  for (int generation = 0; generation < 3; ++generation) {
    Fd listener;
    EXPECT_EQ(try_to_listen(AF_INET, reservation.port(), true, &listener), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(reservation.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  if (has_ipv6()) {
    EXPECT_EQ(try_to_listen(AF_INET6, reservation.port(), true), 0);
    EXPECT_EQ(try_to_listen(AF_INET6, reservation.port(), false), EADDRINUSE);
  }
}

TEST(PortReservationIoTest, ManyReservationsAreAllDifferent) {
  std::vector<PortReservation> reservations(200);
  std::vector<int> ports;
  for (const PortReservation& reservation : reservations) ports.push_back(reservation.port());
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(std::adjacent_find(ports.begin(), ports.end()), ports.end());
}

// B067: the counter is read where there is one; without one nothing is claimed.
TEST(MemoryKillsIoTest, ARiseIsSeenOnce) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "memory.events";
  std::ofstream(file) << "low 0\noom 3\noom_kill 2\n";
  MemoryKills kills(file);
  EXPECT_FALSE(kills.has_risen());
  std::ofstream(file) << "low 0\noom 4\noom_kill 3\n";
  EXPECT_TRUE(kills.has_risen());
  EXPECT_FALSE(kills.has_risen());
  std::filesystem::remove(file);
  EXPECT_FALSE(kills.has_risen());
  EXPECT_FALSE(MemoryKills("/nonexistent").has_risen());
}

}  // namespace
}  // namespace lrun::agent
