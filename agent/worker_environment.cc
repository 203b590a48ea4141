#include "agent/worker_environment.h"

#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::agent {
namespace {

constexpr const char* kOmpThreads = "OMP_NUM_THREADS";

bool continues_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string substitute(std::string_view text, const std::string& value) {
  constexpr std::string_view kBraced = "${local_rank}";
  constexpr std::string_view kPlain = "$local_rank";
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    const bool is_plain = text.starts_with(kPlain) &&
                          (text.size() == kPlain.size() || !continues_a_name(text[kPlain.size()]));
    if (text.starts_with(kBraced)) {
      result += value;
      text.remove_prefix(kBraced.size());
    } else if (is_plain) {
      result += value;
      text.remove_prefix(kPlain.size());
    } else {
      result += '$';
      text.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace

Environment worker_environment(const Environment& parent, const WorkerEnv& worker,
                               const std::string& signals_to_handle) {
  Environment environment = parent;
  // A descriptor of another lrun's channel means nothing here.
  environment.erase("LRUN_CHANNEL_FD");
  environment.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (limits_omp_threads(parent, worker.local_world_size)) environment.emplace(kOmpThreads, "1");
  environment.insert_or_assign("TORCHELASTIC_SIGNALS_TO_HANDLE", signals_to_handle);
  for (auto& [name, value] : to_environment(worker)) {
    environment.insert_or_assign(name, std::move(value));
  }
  return environment;
}

std::vector<std::string> overridden_names(const Environment& parent) {
  std::vector<std::string> names;
  for (const auto& [name, value] : to_environment(WorkerEnv{})) {
    if (parent.find(name) != parent.end()) names.push_back(name);
  }
  return names;
}

bool limits_omp_threads(const Environment& parent, int slots) {
  return slots > 1 && parent.find(kOmpThreads) == parent.end();
}

std::vector<std::string> worker_command(std::vector<std::string> command, LocalRank local_rank) {
  const std::string number = std::to_string(local_rank.value);
  for (std::size_t at = 1; at < command.size(); ++at) command[at] = substitute(command[at], number);
  return command;
}

}  // namespace lrun::agent
