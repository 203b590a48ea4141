#include "trainer/loop/resume_check.h"

#include <map>
#include <utility>

namespace lrun::loop {
namespace {

void compare(const std::string& name, const std::string& saved, const std::string& now,
             std::string* words) {
  if (saved == now) return;
  *words += (words->empty() ? "" : ", ") + name + " was " + saved + " and is " + now;
}

// "threads was '1' and is '2'", one for each key whose value differs or is missing on one side.
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

}  // namespace

std::string resume_conflict(const checkpoint::TrainingState& saved,
                            const checkpoint::TrainingState& now) {
  std::string words;
  compare("seed", std::to_string(saved.seed), std::to_string(now.seed), &words);
  compare("trainer.leaves", std::to_string(saved.leaves), std::to_string(now.leaves), &words);
  compare("data.leaf_size", std::to_string(saved.leaf_size), std::to_string(now.leaf_size), &words);
  compare("the data set's fingerprint", saved.dataset, now.dataset, &words);
  if (words.empty()) return {};
  return "this run cannot continue the one in its folder: " + words +
         "; restore the old values or set another trainer.default_root_dir";
}

std::vector<std::string> resume_warnings(const checkpoint::TrainingState& saved,
                                         const checkpoint::TrainingState& now) {
  std::vector<std::string> warnings;
  for (const std::string& sentence : differences(saved.environment, now.environment)) {
    warnings.push_back(sentence +
                       ": from here on the bits may differ from those of an undisturbed run");
  }
  for (const std::string& sentence : differences(saved.optimization, now.optimization)) {
    warnings.push_back(sentence + " since the checkpoint was saved");
  }
  return warnings;
}

}  // namespace lrun::loop
