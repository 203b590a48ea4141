#include "agent/port_reservation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

namespace lrun::agent {
namespace {

struct Bound {
  Fd socket;
  int port = 0;
};

// Any free port of the wildcard address of `family`. An IPv6 socket covers IPv4 as well.
std::optional<Bound> bind_any(int family) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return std::nullopt;
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    size = sizeof(sockaddr_in6);
  }
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), plain, size) != 0) return std::nullopt;
  if (::getsockname(socket.get(), plain, &size) != 0) return std::nullopt;
  // The port lies at the same place in both kinds of address.
  const auto port = reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
  return Bound{std::move(socket), ntohs(port)};
}

}  // namespace

PortReservation::PortReservation() {
  std::optional<Bound> bound = bind_any(AF_INET6);
  if (!bound) bound = bind_any(AF_INET);
  if (!bound)
    throw std::system_error(errno, std::generic_category(), "reserving a port for workers");
  socket_ = std::move(bound->socket);
  port_ = bound->port;
}

}  // namespace lrun::agent
