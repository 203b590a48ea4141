#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "base/fd.h"
#include "rendezvous/client.h"

namespace lrun::rendezvous {
namespace {

// Any port does: connecting a datagram socket only asks the routing table.
constexpr std::uint16_t kAnyPort = 9;

std::string towards(const sockaddr* address, socklen_t length) {
  const Fd socket(::socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  if (!socket.is_open() || ::connect(socket.get(), address, length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_length) != 0) {
    return {};
  }
  const bool is_v4 = own.ss_family == AF_INET;
  const void* const number =
      is_v4 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(own).sin_addr)
            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(own).sin6_addr);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* const written =
      ::inet_ntop(own.ss_family, number, text.data(), static_cast<socklen_t>(text.size()));
  return written == nullptr ? std::string() : std::string(written);
}

}  // namespace

std::string local_address_towards(const std::string& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(kAnyPort);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    return towards(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(kAnyPort);
  if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    return towards(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  return {};
}

}  // namespace lrun::rendezvous
