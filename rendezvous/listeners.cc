#include "rendezvous/listeners.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace lrun::rendezvous {
namespace {

ListenError cannot_listen(const std::string& where, const std::string& why, bool is_taken) {
  return ListenError("cannot listen on " + where + ": " + why, is_taken);
}

// 0 when the address can be had after all.
int error_of_bind(const addrinfo& address) {
  const Fd socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) return errno;
  return ::listen(socket.get(), 1) == 0 ? 0 : errno;
}

std::string words_for(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the port is taken by another process; choose another port in --rdzv-endpoint, or 0 "
             "to have a free one picked";
    case EACCES:
      return "ports below 1024 need privileges; choose a higher port in --rdzv-endpoint";
    case EADDRNOTAVAIL:
      return "this machine has no such address; give one of its own in --rdzv-endpoint, or 0.0.0.0 "
             "for all";
    default:
      return std::string(std::strerror(error)) + "; choose another address in --rdzv-endpoint";
  }
}

}  // namespace

UnixPathClaim::UnixPathClaim(std::string path) : path_(std::move(path)) {
  const std::string lock_path = path_ + ".lock";
  lock_ = Fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string where = to_string(Endpoint{.unix_path = path_});
  if (!lock_.is_open()) {
    throw cannot_listen(where,
                        lock_path + " cannot be made (" + std::strerror(errno) +
                            "); the folder must exist and be writable by this user",
                        false);
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw cannot_listen(where, "another process serves there; join it, or choose another path",
                        true);
  }
  // Left by a process that died: gRPC would refuse the path.
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) {
    throw cannot_listen(where,
                        std::string("what is there cannot be removed (") + std::strerror(errno) +
                            "); choose another path",
                        false);
  }
}

UnixPathClaim::~UnixPathClaim() {
  if (lock_.is_open()) ::unlink(path_.c_str());
}

ListenError explain_failed_listen(const Endpoint& endpoint) {
  const std::string where = to_string(endpoint);
  if (!endpoint.unix_path.empty()) {
    return cannot_listen(where, "the socket could not be made; choose another path", false);
  }
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) {
    return cannot_listen(where,
                         std::string("the name is not known here (") + ::gai_strerror(failed) +
                             "); give an address of this machine in --rdzv-endpoint",
                         false);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int error = error_of_bind(*each);
    if (error != 0) return cannot_listen(where, words_for(error), error == EADDRINUSE);
  }
  return cannot_listen(where, "the address was taken for a moment; try again", true);
}

}  // namespace lrun::rendezvous
