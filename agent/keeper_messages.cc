#include "agent/keeper_messages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lrun::agent {
namespace {

constexpr std::size_t kDescriptorsMax = 4;

// An order on the wire: `present` has one bit for each of the four descriptors.
struct OrderPacket {
  Order order;
  std::uint32_t present = 0;
};

using ControlBuffer = std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)>;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void append_list(std::string& bytes, const std::vector<std::string>& list) {
  bytes += std::to_string(list.size());
  bytes += '\0';
  for (const std::string& text : list) {
    bytes += text;
    bytes += '\0';
  }
}

// Takes NUL-ended texts off the front.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::string> text() {
    const std::size_t end = bytes_.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    std::string taken(bytes_.substr(0, end));
    bytes_.remove_prefix(end + 1);
    return taken;
  }

  std::optional<std::vector<std::string>> list() {
    const std::optional<std::string> count = text();
    if (!count || count->empty() || count->size() > 8) return std::nullopt;
    std::vector<std::string> list;
    for (auto left = std::strtoul(count->c_str(), nullptr, 10); left > 0; --left) {
      std::optional<std::string> item = text();
      if (!item) return std::nullopt;
      list.push_back(*std::move(item));
    }
    return list;
  }

 private:
  std::string_view bytes_;
};

std::vector<Fd> descriptors_in(msghdr& header) {
  std::vector<Fd> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < count; ++at) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof(int), sizeof(int));
      found.emplace_back(descriptor);
    }
  }
  return found;
}

Received outcome_of(ssize_t got, std::size_t expected) {
  if (got == 0) return Received::PeerGone;
  if (got < 0) {
    const bool is_passing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return is_passing ? Received::Nothing : Received::PeerGone;
  }
  return static_cast<std::size_t>(got) == expected ? Received::Message : Received::Nothing;
}

}  // namespace

Fd to_memory_file(const SpawnPayload& payload) {
  std::string bytes;
  append_list(bytes, payload.command);
  append_list(bytes, payload.environment);
  append_list(bytes, payload.marks);
  if (bytes.size() > kSpawnBytesMax) {
    errno = E2BIG;
    throw_errno("command and environment");
  }
  Fd file(::memfd_create("lrun-spawn", MFD_CLOEXEC));
  if (!file.is_open()) throw_errno("memfd_create");
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t put = ::write(file.get(), bytes.data() + written, bytes.size() - written);
    if (put <= 0) throw_errno("writing command and environment");
    written += static_cast<std::size_t>(put);
  }
  return file;
}

std::optional<SpawnPayload> from_memory_file(const Fd& file) {
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > kSpawnBytesMax) return std::nullopt;
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  Cursor cursor(bytes);
  auto command = cursor.list();
  auto environment = cursor.list();
  auto marks = cursor.list();
  if (!command || command->empty() || !environment || !marks) return std::nullopt;
  return SpawnPayload{*std::move(command), *std::move(environment), *std::move(marks)};
}

bool send_order(const Fd& connection, const Order& order, const SpawnDescriptors* descriptors) {
  OrderPacket packet{.order = order};
  std::array<int, kDescriptorsMax> open{};
  std::size_t count = 0;
  if (descriptors) {
    const std::array<const Fd*, kDescriptorsMax> all{
        &descriptors->payload, &descriptors->stdout_end, &descriptors->stderr_end,
        &descriptors->channel};
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (!all[at]->is_open()) continue;
      packet.present |= 1u << at;
      open[count++] = all[at]->get();
    }
  }
  iovec piece{&packet, sizeof(packet)};
  alignas(cmsghdr) ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::memcpy(CMSG_DATA(part), open.data(), sizeof(int) * count);
  }
  return ::sendmsg(connection.get(), &header, MSG_NOSIGNAL) == sizeof(packet);
}

bool send_report(const Fd& connection, const Report& report) {
  return ::send(connection.get(), &report, sizeof(report), MSG_NOSIGNAL) == sizeof(report);
}

Received receive_order(const Fd& connection, ReceivedOrder* received) {
  OrderPacket packet;
  iovec piece{&packet, sizeof(packet)};
  alignas(cmsghdr) ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got =
      ::recvmsg(connection.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_TRUNC);
  std::vector<Fd> descriptors = descriptors_in(header);  // owned at once, whatever the packet says
  const Received outcome = outcome_of(got, sizeof(packet));
  if (outcome != Received::Message) return outcome;
  received->order = packet.order;
  SpawnDescriptors& into = received->descriptors;
  const std::array<Fd*, kDescriptorsMax> all{&into.payload, &into.stdout_end, &into.stderr_end,
                                             &into.channel};
  std::size_t next = 0;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const bool is_here = ((packet.present >> at) & 1u) != 0 && next < descriptors.size();
    *all[at] = is_here ? std::move(descriptors[next++]) : Fd();
  }
  return outcome;
}

Received receive_report(const Fd& connection, Report* report) {
  const ssize_t got = ::recv(connection.get(), report, sizeof(*report), MSG_DONTWAIT | MSG_TRUNC);
  return outcome_of(got, sizeof(*report));
}

}  // namespace lrun::agent
