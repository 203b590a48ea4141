#include "trainer/loop/environment_identity.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <cstdlib>

namespace lrun::loop {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::map<std::string, std::string> environment_identity() {
  return {{"cpu_capability", at::get_cpu_capability()},
          {"torch", TORCH_VERSION},
          {"threads", std::to_string(at::get_num_threads())},
          {"MKL_CBWR", variable("MKL_CBWR")}};
}

std::vector<std::string> differences(const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& now) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [key, value] : before) both[key].first = value;
  for (const auto& [key, value] : now) both[key].second = value;
  std::vector<std::string> sentences;
  for (const auto& [key, values] : both) {
    if (values.first == values.second) continue;
    sentences.push_back(key + " was '" + values.first + "' and is '" + values.second + "'");
  }
  return sentences;
}

}  // namespace lrun::loop
