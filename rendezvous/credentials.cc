#include "rendezvous/credentials.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/log.h"
#include "rendezvous/certificates.h"

namespace lrun::rendezvous {
namespace {

// A certificate or key is a few KiB; a bundle of CAs may be more.
constexpr std::size_t kFileBytesMax = 1024 * 1024;
// Own certificates are renewed when less than a third of their life is left.
constexpr auto kLeafLife = std::chrono::hours(24 * 365);
constexpr auto kRenewWhenLeft = kLeafLife / 3;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CredentialsError(path + " " + why);
}

std::string reason_of(int error) { return std::strerror(error); }

std::string read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    refuse(path, "cannot be read (" + reason_of(errno) +
                     "); a TLS folder holds ca.crt, tls.crt and tls.key");
  }
  std::string text;
  std::array<char, 4096> part;
  ssize_t got = 0;
  while ((got = ::read(file.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) refuse(path, "is larger than 1 MiB: no certificate or key");
  }
  if (got < 0) refuse(path, "cannot be read (" + reason_of(errno) + ")");
  return text;
}

// Secret from its first byte on: never readable by others, not even for a moment.
void write_file(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool is_written =
      file.is_open() &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0;
  if (!is_written) refuse(path, "cannot be written (" + reason_of(errno) + ")");
}

void refuse_readable_by_all(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse(path, "cannot be read (" + reason_of(errno) + ")");
  if ((status.st_mode & S_IRWXO) != 0) {
    refuse(path, "can be read by everybody on this machine: chmod o-rwx it, or 600");
  }
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string home_folder() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  const passwd* const entry = ::getpwuid(::getuid());
  if (entry == nullptr || entry->pw_dir == nullptr) {
    throw CredentialsError("this user has no home folder for keys: set HOME, or give --tls DIR");
  }
  return entry->pw_dir;
}

// A folder that is gone with its content unless it was kept.
class TemporaryFolder {
 public:
  // Beside `target`, so that a rename can move it there.
  explicit TemporaryFolder(const std::string& target) : path_(target + ".XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      const int error = errno;
      path_.clear();
      refuse(target, "cannot be made (" + reason_of(error) +
                         "); make its parent writable, or give --tls DIR");
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // nothing can be done about it here, and nothing depends on it
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // False when somebody else's complete folder is there already.
  bool move_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) == 0) {
      path_.clear();
      return true;
    }
    if (errno == EEXIST || errno == ENOTEMPTY) return false;
    refuse(target, "cannot be made (" + reason_of(errno) + ")");
  }

 private:
  std::string path_;
};

// tls.crt is replaced in one step and keeps its key, so that whoever reads meanwhile gets a pair.
void renew(const Credentials& old) {
  const std::string ca_key_path = old.folder + "/ca.key";
  refuse_readable_by_all(ca_key_path);
  const Certificate authority{.certificate_pem = old.ca_pem, .key_pem = read_file(ca_key_path)};
  const std::string renewed = renewed_leaf(authority, old.key_pem, kLeafLife);
  const TemporaryFolder workshop(old.folder + "/renewal");
  write_file(workshop.path() + "/tls.crt", renewed);
  const std::string target = old.folder + "/tls.crt";
  if (::rename((workshop.path() + "/tls.crt").c_str(), target.c_str()) != 0) {
    refuse(target, "cannot be replaced (" + reason_of(errno) + ")");
  }
}

Credentials read_folder(const std::string& folder) {
  refuse_readable_by_all(folder + "/tls.key");
  Credentials credentials{.folder = folder,
                          .ca_pem = read_file(folder + "/ca.crt"),
                          .certificate_pem = read_file(folder + "/tls.crt"),
                          .key_pem = read_file(folder + "/tls.key"),
                          .not_after = {}};
  credentials.not_after = not_after(credentials.certificate_pem, folder + "/tls.crt");
  return credentials;
}

void check(const Credentials& credentials) {
  check_pair(credentials.certificate_pem, credentials.key_pem, credentials.folder);
  check_issued_by(credentials.certificate_pem, credentials.ca_pem, credentials.folder);
}

}  // namespace

std::string user_tls_folder() {
  const std::string configured = environment("XDG_CONFIG_HOME");
  const std::string base = configured.starts_with('/') ? configured : home_folder() + "/.config";
  return base + "/lrun/tls";
}

Credentials load_credentials(const std::string& folder) {
  const Credentials credentials = read_folder(folder);
  check(credentials);
  return credentials;
}

void make_credentials(const std::string& folder) {
  std::error_code failed;
  // Unreadable counts as there: reading it then says what is wrong.
  if (std::filesystem::exists(folder, failed) || failed) return;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), failed);
  if (failed) refuse(folder, "cannot be made (" + failed.message() + ")");
  const Certificate authority = new_authority();
  const Certificate leaf = new_leaf(authority, kLeafLife);
  TemporaryFolder workshop(folder);
  write_file(workshop.path() + "/ca.crt", authority.certificate_pem);
  write_file(workshop.path() + "/ca.key", authority.key_pem);
  write_file(workshop.path() + "/tls.crt", leaf.certificate_pem);
  write_file(workshop.path() + "/tls.key", leaf.key_pem);
  workshop.move_to(folder);
}

Credentials load_or_make_credentials(const std::string& folder) {
  make_credentials(folder);
  const Credentials credentials = read_folder(folder);
  const bool is_old = credentials.not_after - std::chrono::system_clock::now() < kRenewWhenLeft;
  std::error_code unreadable;
  if (is_old && std::filesystem::exists(folder + "/ca.key", unreadable)) {
    try {
      renew(credentials);
    } catch (const CredentialsError& error) {
      log::warn("certificate_not_renewed", {{"why", error.what()}});
    }
  }
  return load_credentials(folder);
}

}  // namespace lrun::rendezvous
