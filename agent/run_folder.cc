#include "agent/run_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

namespace lrun::agent {
namespace {

namespace fs = std::filesystem;

// Names longer than this are cut: a file system takes 255 bytes, and six random ones follow.
constexpr std::size_t kNameBytesMax = 200;

UsageError cannot_use(const std::string& path, const std::string& why) {
  return {"--log-dir: '" + path + "' cannot be used (" + why +
          "): give a folder that can be written, or /dev/null for no files"};
}

// A new folder whose name begins with `prefix`, mode 0700.
std::optional<std::string> make_unique_folder(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  if (!::mkdtemp(path.data())) return std::nullopt;
  return path;
}

}  // namespace

std::string folder_name(std::string_view run_id) {
  std::string name;
  for (const char c : run_id.substr(0, kNameBytesMax)) {
    const bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    name += is_safe ? c : '_';
  }
  // "." and ".." are no names.
  if (!name.empty() && name.front() == '.') name.front() = '_';
  return name.empty() ? "none" : name;
}

std::variant<std::string, UsageError> make_run_folder(std::optional<std::string> log_dir,
                                                      std::string_view run_id) {
  if (log_dir == "/dev/null") return std::string();
  std::error_code error;
  std::string base;
  if (log_dir) {
    base = fs::absolute(*log_dir, error).lexically_normal();
    if (!error) fs::create_directories(base, error);
    if (error) return cannot_use(*log_dir, error.message());
    if (!fs::is_directory(base, error)) return cannot_use(*log_dir, "it is not a folder");
  } else {
    const char* temporary = std::getenv("TMPDIR");
    const std::string parent = temporary && *temporary ? temporary : "/tmp";
    const auto made = make_unique_folder(fs::absolute(parent, error) / "torchelastic_");
    if (!made) return cannot_use(parent, std::strerror(errno));
    base = *made;
  }
  const auto made = make_unique_folder(base + "/" + folder_name(run_id) + "_");
  if (!made) return cannot_use(base, std::strerror(errno));
  if (log_dir) fs::permissions(*made, fs::perms(0755), error);
  return *made;
}

}  // namespace lrun::agent
