#include "launcher/discovery.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "launcher/runtime_folder.h"
#include "rendezvous/client.h"
#include "rendezvous/state_machine.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kJobsOfOneNameMax = 1000;
constexpr int kLockWaitMs = 10'000;
constexpr Duration kQueryLimit = std::chrono::seconds(2);

std::string socket_path(const std::string& folder, const std::string& run_id, int index) {
  const std::string suffix = index == 1 ? "" : "." + std::to_string(index);
  return folder + "/" + safe_file_name(run_id) + suffix + ".sock";
}

bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.is_open() &&
         ::connect(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// Room for one more node of the same job: not closed, and fewer nodes than it wants.
bool has_room(const std::string& path) {
  rendezvous::Client::Options options;
  options.endpoints = {{.unix_path = path, .host = "", .port = 0}};
  options.call_limit = kQueryLimit;
  const auto answer = rendezvous::get_status_now(std::move(options));
  const auto* reply = std::get_if<rendezvous::Client::StatusAnswer>(&answer);
  if (reply == nullptr) return false;
  const auto* status = std::get_if<rendezvous::Status>(reply);
  return status != nullptr && !rendezvous::is_full(*status);
}

std::string jobs_folder(const std::string& runtime_folder) {
  std::string folder = runtime_folder + "/jobs";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error("cannot make the folder " + folder + " (" + std::strerror(errno) +
                             ")");
  }
  return folder;
}

}  // namespace

SocketChoice choose_socket(const std::string& runtime_folder, const std::string& run_id,
                           bool joins) {
  const std::string folder = jobs_folder(runtime_folder);
  const std::string lock_path = folder + "/" + safe_file_name(run_id) + ".lock";
  auto lock = lock_file(lock_path, kLockWaitMs);
  if (!lock) {
    throw std::runtime_error("another lrun has held " + lock_path +
                             " for 10 s; end it, or give this job its own --rdzv-id");
  }
  for (int index = 1; index <= kJobsOfOneNameMax; ++index) {
    const std::string path = socket_path(folder, run_id, index);
    if (!answers(path)) {
      ::unlink(path.c_str());
      return {path, false, std::move(*lock)};
    }
    if (joins && has_room(path)) return {path, true, std::move(*lock)};
  }
  throw std::runtime_error("more than " + std::to_string(kJobsOfOneNameMax) + " jobs named '" +
                           run_id + "' on this machine; give this one its own --rdzv-id");
}

std::vector<std::string> live_sockets(const std::string& runtime_folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runtime_folder + "/jobs", ignored)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".sock") && answers(path)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string run_id_of_command(const std::vector<std::string>& command, const std::string& folder,
                              int min_nodes, int max_nodes) {
  std::string all = folder + '\0' + std::to_string(min_nodes) + ":" + std::to_string(max_nodes);
  for (const std::string& word : command) all += '\0' + word;
  unsigned long hash = 1469598103934665603UL;  // FNV-1a: the same in every process
  for (const char c : all) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211UL;
  std::string digits;
  for (int i = 0; i < 10; ++i, hash >>= 4) digits += "0123456789abcdef"[hash & 15];
  std::string name = fs::path(command.front()).filename().string();
  constexpr std::size_t kNameBytesMax = 40;
  return name.substr(0, kNameBytesMax) + "-" + digits;
}

}  // namespace lrun::launcher
