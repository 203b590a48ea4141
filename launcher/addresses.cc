#include "launcher/addresses.h"

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

#include "rendezvous/client.h"

namespace lrun::launcher {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, NI_MAXHOST> text{};
  const socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int error =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
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
    found.push_back(
        {numeric(one->ifa_addr), (one->ifa_flags & IFF_LOOPBACK) != 0, family == AF_INET});
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
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next)
    found.insert(numeric(one->ai_addr));
  return found;
}

// "host", "host:", "[v6]" and ":port" get what they lack; everything else is parse_endpoint's.
std::string completed(std::string_view text) {
  if (text.starts_with("unix:")) return std::string(text);
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string out(text);
  if (colon == 0) out = "localhost" + out;
  if (colon == std::string_view::npos) out += ":" + std::to_string(kDefaultRendezvousPort);
  return out;
}

}  // namespace

std::vector<rendezvous::Endpoint> parse_endpoints(std::string_view text) {
  std::vector<rendezvous::Endpoint> endpoints;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    endpoints.push_back(rendezvous::parse_endpoint(completed(one)));
  }
  return endpoints;
}

bool is_this_machine(const std::string& host) {
  if (rendezvous::is_loopback({.unix_path = "", .host = host, .port = 0})) return true;
  const std::set<std::string> wanted = addresses_of(host);
  if (wanted.empty()) return host == host_name();
  const auto own = interface_addresses();
  return std::any_of(own.begin(), own.end(),
                     [&](const InterfaceAddress& one) { return wanted.contains(one.address); });
}

std::string reachable_address() {
  constexpr const char* kFarAway = "192.0.2.1";  // documentation range, RFC 5737; nothing is sent
  const std::string routed = rendezvous::local_address_towards(kFarAway);
  if (!routed.empty() && !routed.starts_with("127.")) return routed;
  std::string any;
  for (const InterfaceAddress& one : interface_addresses()) {
    if (one.is_loopback || one.address.starts_with("fe80:")) continue;
    if (one.is_v4) return one.address;
    if (any.empty()) any = one.address;
  }
  return any;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> own{};
  if (::gethostname(own.data(), own.size() - 1) != 0 || own[0] == '\0') return "localhost";
  return own.data();
}

}  // namespace lrun::launcher
