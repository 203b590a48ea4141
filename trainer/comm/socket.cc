#include "trainer/comm/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace lrun::comm {
namespace {

constexpr int kKinds = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr std::size_t kDescriptorsMax = 8;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  std::to_string(port).c_str(), &hints, &found);
  Addresses addresses(found, &::freeaddrinfo);
  if (error != 0) {
    throw std::runtime_error("cannot resolve '" + host + "': " + ::gai_strerror(error));
  }
  return addresses;
}

bool is_numeric(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

// Not open when the address cannot be bound.
Fd try_listen(const addrinfo& address) {
  Fd socket(::socket(address.ai_family, kKinds, 0));
  const int no = 0;
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (!socket.is_open() || ::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return Fd();
  }
  return socket;
}

int port_of(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot read the port of a listener");
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void set_no_delay(const Fd& socket) {
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

bool is_under_way(int result) { return result == 0 || errno == EINPROGRESS || errno == EAGAIN; }

}  // namespace

TcpListener listen_tcp(const std::string& host) {
  std::vector<std::string> candidates;
  if (is_numeric(host)) candidates.push_back(host);
  candidates.insert(candidates.end(), {"::", "0.0.0.0"});
  for (const std::string& candidate : candidates) {
    const Addresses addresses = resolve(candidate, 0, AI_PASSIVE | AI_NUMERICHOST);
    Fd socket = try_listen(*addresses);
    if (!socket.is_open()) continue;
    const int port = port_of(socket);
    return {std::move(socket), port};
  }
  throw std::system_error(errno, std::generic_category(), "cannot listen on '" + host + "'");
}

UnixListener listen_unix() {
  Fd socket(::socket(AF_UNIX, kKinds, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Only the family: the kernel picks a free name of five hexadecimal digits.
  socklen_t size = sizeof(sa_family_t);
  if (!socket.is_open() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot listen on a Unix socket");
  }
  size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot name a Unix socket");
  }
  const std::size_t length = size - offsetof(sockaddr_un, sun_path) - 1;
  return {std::move(socket), std::string(address.sun_path + 1, length)};
}

Fd accept_one(const Fd& listener) {
  Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) set_no_delay(socket);  // no effect on Unix sockets
  return socket;
}

Fd dial_tcp(const std::string& host, int port, int attempt) {
  const Addresses addresses = resolve(host, port, 0);
  int count = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) ++count;
  const addrinfo* chosen = addresses.get();
  for (int skip = attempt % count; skip > 0; --skip) chosen = chosen->ai_next;
  Fd socket(::socket(chosen->ai_family, kKinds, 0));
  if (!socket.is_open() ||
      !is_under_way(::connect(socket.get(), chosen->ai_addr, chosen->ai_addrlen))) {
    return Fd();
  }
  set_no_delay(socket);
  return socket;
}

Fd dial_unix(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return Fd();
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  Fd socket(::socket(AF_UNIX, kKinds, 0));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return Fd();
  }
  return socket;
}

bool send_message(const Fd& socket, const void* message, std::size_t bytes,
                  const std::vector<int>& descriptors) {
  // sendmsg only reads.
  iovec piece{const_cast<void*>(message), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty() && descriptors.size() <= kDescriptorsMax) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
  }
  // A fresh connection has room for a greeting; anything less is as good as no peer.
  return ::sendmsg(socket.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

}  // namespace lrun::comm
