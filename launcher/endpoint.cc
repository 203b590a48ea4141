#include "launcher/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <set>

#include "base/fd.h"

namespace lrun::launcher {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int error = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : std::string();
}

struct InterfaceAddress {
  std::string address;
  bool is_loopback = false;
  bool is_v4 = false;
};

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    found.push_back({numeric(one->ifa_addr), (one->ifa_flags & IFF_LOOPBACK) != 0, family == AF_INET});
  }
  return found;
}

std::set<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::set<std::string> found;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) found.insert(numeric(one->ai_addr));
  return found;
}

// The address the kernel would use towards a far host; connecting a datagram socket sends nothing.
std::string address_of_default_route() {
  const Fd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);  // documentation range, RFC 5737
  if (!probe.is_open() || ::connect(probe.get(), reinterpret_cast<sockaddr*>(&far), sizeof far) != 0) return {};
  sockaddr_in near{};
  socklen_t size = sizeof near;
  if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&near), &size) != 0) return {};
  return numeric(reinterpret_cast<sockaddr*>(&near));
}

Endpoint parse_one(std::string_view text) {
  if (text.starts_with("unix:")) return {"", 0, std::string(text.substr(5))};
  Endpoint endpoint;
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) endpoint.port = std::stoi(std::string(text.substr(colon + 1)));
  endpoint.host = text.substr(0, colon);
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  if (endpoint.host.empty()) endpoint.host = "localhost";
  return endpoint;
}

}  // namespace

std::vector<Endpoint> parse_endpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    endpoints.push_back(parse_one(one));
  }
  return endpoints;
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return "unix:" + endpoint.unix_path;
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool is_this_machine(const std::string& host) {
  if (is_loopback(host)) return true;
  const std::set<std::string> wanted = addresses_of(host);
  if (wanted.empty()) {
    std::array<char, HOST_NAME_MAX + 1> own{};
    return ::gethostname(own.data(), own.size() - 1) == 0 && host == own.data();
  }
  const auto own = interface_addresses();
  return std::any_of(own.begin(), own.end(),
                     [&](const InterfaceAddress& one) { return wanted.contains(one.address); });
}

std::string reachable_address() {
  const std::string routed = address_of_default_route();
  if (!routed.empty() && !is_loopback(routed)) return routed;
  std::string any;
  for (const InterfaceAddress& one : interface_addresses()) {
    if (one.is_loopback || one.address.starts_with("fe80:")) continue;
    if (one.is_v4) return one.address;
    if (any.empty()) any = one.address;
  }
  return any;
}

}  // namespace lrun::launcher
