#include "trainer/train/place.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>

#include "base/fd.h"
#include "trainer/loop/errors.h"

extern char** environ;

namespace lrun::train {
namespace {

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

// The address from which this node reaches `peer`: the one peers can reach it by. A datagram socket
// asks the routing table without sending anything.
std::string address_towards(const std::string& peer) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(peer.c_str(), "9", &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const Fd socket(::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t length = sizeof own;
    std::array<char, NI_MAXHOST> text{};
    if (::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text.data(), text.size(),
                      nullptr, 0, NI_NUMERICHOST) == 0) {
      return text.data();
    }
  }
  return {};
}

std::string own_address(const WorkerEnv& worker) {
  constexpr const char* kLoopback = "127.0.0.1";
  if (worker.group_world_size == 1) return kLoopback;
  const std::string address = address_towards(worker.master_addr);
  return address.empty() ? kLoopback : address;
}

// Workers with the same text share memory: same machine, same group rank.
std::string node_name(const WorkerEnv& worker) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + "/" + std::to_string(worker.group_rank.value);
}

}  // namespace

WorkerEnv read_worker_env() {
  const auto read = from_environment(process_environment());
  if (const auto* error = std::get_if<EnvironmentError>(&read)) {
    throw loop::UsageError(error->sentence);
  }
  return std::get<WorkerEnv>(read);
}

Place connect(const WorkerEnv& worker) {
  Place place{.worker = worker,
              .channel = comm::WorkerChannel::open(worker),
              .bootstrap = nullptr,
              .comm = nullptr};
  if (place.channel) place.bootstrap = std::make_unique<comm::ChannelBootstrap>(*place.channel);
  if (worker.world_size > 1 && !place.channel) {
    throw loop::UsageError("WORLD_SIZE is " + std::to_string(worker.world_size) +
                           " but LRUN_CHANNEL_FD is not set: start several workers with lrun, or "
                           "unset RANK and WORLD_SIZE for one");
  }
  place.comm = comm::Comm::connect({.rank = worker.global_rank,
                                    .world_size = worker.world_size,
                                    .generation = worker.generation,
                                    .host = own_address(worker),
                                    .node = node_name(worker)},
                                   place.bootstrap.get());
  return place;
}

}  // namespace lrun::train
