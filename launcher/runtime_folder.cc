#include "launcher/runtime_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace lrun::launcher {
namespace {

constexpr int kAgentsOnOneMachineMax = 20'000;
constexpr int kLockPollMs = 10;
constexpr std::size_t kFileNameBytesMax = 64;

std::string hash_text(const std::string& text) {
  unsigned long hash = 1469598103934665603UL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211UL;
  std::string digits;
  for (int i = 0; i < 8; ++i, hash >>= 4) digits += "0123456789abcdef"[hash & 15];
  return digits;
}

void make_private(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error("cannot make the folder " + path + " (" + std::strerror(errno) +
                             "); set XDG_RUNTIME_DIR to a folder of yours");
  }
  struct stat found {};
  const bool is_ours = ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                       found.st_uid == ::geteuid() && (found.st_mode & 077) == 0;
  if (!is_ours) {
    throw std::runtime_error("the folder " + path +
                             " is not private to you (mode 0700 and yours); remove it, "
                             "or set XDG_RUNTIME_DIR to a folder of yours");
  }
}

}  // namespace

std::string runtime_folder() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  std::string path = base != nullptr && base[0] == '/' ? std::string(base) + "/lrun"
                                                       : "/tmp/lrun-" + std::to_string(::geteuid());
  make_private(path);
  return path;
}

std::string safe_file_name(const std::string& text) {
  std::string name;
  bool is_changed = text.empty() || text.size() > kFileNameBytesMax - 9 || text[0] == '.';
  for (const char c : text) {
    const bool is_safe =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    name += is_safe ? c : '_';
    is_changed = is_changed || !is_safe;
  }
  if (!is_changed) return name;
  if (!name.empty() && name[0] == '.') name[0] = '_';
  return name.substr(0, kFileNameBytesMax - 9) + "-" + hash_text(text);
}

std::optional<Fd> lock_file(const std::string& path, int wait_ms) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) {
    throw std::runtime_error("cannot open " + path + " (" + std::strerror(errno) +
                             "); check its folder");
  }
  for (int waited = 0;; waited += kLockPollMs) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (waited >= wait_ms) return std::nullopt;
    ::poll(nullptr, 0, kLockPollMs);
  }
}

void unlock_file(Fd& lock) {
  if (lock.is_open()) ::flock(lock.get(), LOCK_UN);
  lock.reset();
}

NodeName claim_node_name(const std::string& folder, const std::string& host,
                         const std::string& run_id) {
  make_private(folder + "/nodes");
  for (int index = 0; index < kAgentsOnOneMachineMax; ++index) {
    std::string name = index == 0 ? host : host + "#" + std::to_string(index);
    const std::string path =
        folder + "/nodes/" + safe_file_name(run_id) + "." + safe_file_name(name) + ".lock";
    if (auto lock = lock_file(path, 0)) return {std::move(name), std::move(*lock)};
  }
  throw std::runtime_error("more than " + std::to_string(kAgentsOnOneMachineMax) +
                           " agents of one job on this machine; give each a --node-name");
}

}  // namespace lrun::launcher
