#include "launcher/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

bool is_executable_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> on_path(const std::string& name, const Environment& environment) {
  const auto found = environment.find("PATH");
  std::string_view folders = found == environment.end() ? std::string_view("/usr/bin:/bin")
                                                        : std::string_view(found->second);
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (is_executable_file(candidate)) return candidate.string();
  }
  return std::nullopt;
}

// A word with a slash is a path; another is looked for beside lrun, then on PATH.
std::optional<std::string> find_executable(const std::string& name,
                                           const Environment& environment) {
  if (name.find('/') != std::string::npos) {
    return is_executable_file(name) ? std::optional(fs::absolute(name).string()) : std::nullopt;
  }
  const fs::path beside = fs::path(own_folder()) / name;
  if (is_executable_file(beside)) return beside.string();
  return on_path(name, environment);
}

std::variant<std::vector<std::string>, UsageError> with_python(const RunCommand& command,
                                                               const Environment& environment) {
  const auto chosen = environment.find("PYTHON_EXEC");
  std::optional<std::string> python;
  if (chosen != environment.end()) {
    python = find_executable(chosen->second, environment);
    if (!python) {
      return UsageError{"PYTHON_EXEC='" + chosen->second +
                        "' is no executable file; name a Python interpreter"};
    }
  } else {
    python = on_path("python3", environment);
    if (!python) python = on_path("python", environment);
    if (!python) {
      return UsageError{"'" + command.program.front() +
                        "' needs Python, and neither python3 nor python is on PATH; install it or "
                        "set PYTHON_EXEC"};
    }
  }
  std::vector<std::string> words{*python, "-u"};
  if (command.options.is_module) words.emplace_back("-m");
  words.insert(words.end(), command.program.begin(), command.program.end());
  return words;
}

UsageError why_not(const std::string& name) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    return {"program '" + name + "' is a folder; name the program in it"};
  }
  if (name.find('/') != std::string::npos && fs::exists(name, ignored)) {
    return {"program '" + name + "' is not executable; run: chmod +x " + name};
  }
  if (name.find('/') != std::string::npos)
    return {"program '" + name + "' does not exist; check the path"};
  return {"program '" + name + "' was found neither beside lrun (" + own_folder() +
          ") nor on PATH; give its path, such as ./" + name};
}

}  // namespace

std::string own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

std::variant<std::vector<std::string>, UsageError> resolve_program(const RunCommand& command,
                                                                   const Environment& environment) {
  const std::string& name = command.program.front();
  if (command.options.is_module) return with_python(command, environment);
  if (!command.options.no_python && name.ends_with(".py")) {
    // `${local_rank}` in the name is replaced for each worker, so such a name cannot be checked.
    std::error_code ignored;
    if (name.find('$') == std::string::npos && !fs::exists(name, ignored)) {
      return UsageError{"program '" + name + "' does not exist; check the path"};
    }
    return with_python(command, environment);
  }
  const std::optional<std::string> executable = find_executable(name, environment);
  if (!executable) return why_not(name);
  std::vector<std::string> words = command.program;
  words.front() = *executable;
  return words;
}

}  // namespace lrun::launcher
