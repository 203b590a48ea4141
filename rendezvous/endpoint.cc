#include "rendezvous/endpoint.h"

#include <charconv>
#include <stdexcept>

namespace lrun::rendezvous {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kPortMax = 65535;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw std::invalid_argument("endpoint '" + std::string(text) + "' " + std::string(why) +
                              "; write host:port, [address]:port or unix:/path");
}

int parse_port(std::string_view text, std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || port < 0 || port > kPortMax) {
    refuse(text, "has the port '" + std::string(digits) + "', not a number from 0 to 65535");
  }
  return port;
}

bool is_ipv4_loopback(std::string_view host) {
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

Endpoint parse_endpoint(std::string_view text) {
  if (text.starts_with(kUnixPrefix)) {
    Endpoint endpoint{.unix_path = std::string(text.substr(kUnixPrefix.size()))};
    if (!endpoint.unix_path.starts_with('/')) refuse(text, "has a path that is not absolute");
    if (endpoint.unix_path.size() > kUnixPathBytesMax) {
      refuse(text, "has a path of " + std::to_string(endpoint.unix_path.size()) +
                       " bytes, of which a socket takes " + std::to_string(kUnixPathBytesMax));
    }
    return endpoint;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text, "has no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse(text, "has several colons: an IPv6 address needs brackets");
  }
  if (host.empty()) refuse(text, "has no host");
  if (host.find_first_of(" \t\r\n/,\\\"'") != std::string_view::npos) {
    refuse(text, "has a character that no host name contains");
  }
  return {.host = std::string(host), .port = parse_port(text, text.substr(colon + 1))};
}

std::string to_string(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return std::string(kUnixPrefix) + endpoint.unix_path;
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
         std::to_string(endpoint.port);
}

bool is_loopback(const Endpoint& endpoint) {
  return !endpoint.unix_path.empty() || endpoint.host == "localhost" || endpoint.host == "::1" ||
         is_ipv4_loopback(endpoint.host);
}

}  // namespace lrun::rendezvous
