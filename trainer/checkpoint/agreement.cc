#include "trainer/checkpoint/agreement.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/writer.h"

namespace lrun::checkpoint {
namespace {

// Enough to see what is wrong with a folder; more would bury the rest of the output.
constexpr std::size_t kLinesMax = 10;
constexpr std::size_t kDifferencesMax = 5;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kDifferencesMax); ++i) {
    text += (i == 0 ? "" : ", ") + words[i];
  }
  if (words.size() > kDifferencesMax) {
    text += " and " + std::to_string(words.size() - kDifferencesMax) + " more";
  }
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<std::string> differences(const LoadTarget& target, const Loaded& loaded) {
  std::map<std::string, std::pair<std::string, std::string>> shapes;  // name → saved, wanted
  for (const TensorRecord& tensor : loaded.manifest.tensors)
    shapes[tensor.name].first = shape_text(tensor.shape);
  for (const TensorRecord& tensor : target.tensors)
    shapes[tensor.name].second = shape_text(tensor.shape);
  for (const std::string& name : loaded.manifest.buffers) shapes[name].first = "buffer";
  for (const std::string& name : target.buffers) shapes[name].second = "buffer";
  std::vector<std::string> words;
  for (const auto& [name, both] : shapes) {
    if (both.first == both.second) continue;
    if (both.second.empty()) {
      words.push_back(name + " is only in the checkpoint");
    } else if (both.first.empty()) {
      words.push_back(name + " is only in the model");
    } else {
      words.push_back(name + " is " + both.first + " there and " + both.second + " in the model");
    }
  }
  if (words.empty()) words.emplace_back("the order of the tensors");
  return words;
}

// Steps and generations: the same save has the same both.
std::string list_of(const Catalog& catalog) {
  nlohmann::json list = nlohmann::json::array();
  for (const CompleteCheckpoint& found : catalog.complete) {
    list.push_back({found.manifest.step, to_json(found.manifest)});
  }
  // Manifests are long; their checksums travel.
  for (auto& pair : list) {
    Checksum checksum;
    const std::string text = pair[1];
    checksum.add(std::as_bytes(std::span(text)));
    pair[1] = checksum.hexadecimal();
  }
  return list.dump();
}

using StepsOfRank = std::map<std::int64_t, std::string>;  // step → checksum of its manifest

std::vector<StepsOfRank> gather(const Catalog& catalog, comm::Comm& comm) {
  const std::string mine = list_of(catalog);
  std::vector<StepsOfRank> all;
  for (const auto& bytes : comm.all_gather_bytes(std::as_bytes(std::span(mine)))) {
    StepsOfRank steps;
    for (const auto& pair : nlohmann::json::parse(text_of(bytes))) steps[pair[0]] = pair[1];
    all.push_back(std::move(steps));
  }
  return all;
}

// Global ranks that lack the checkpoint or have another one than the first rank that has it.
std::string ranks_without(const std::vector<StepsOfRank>& all, std::int64_t step) {
  std::string text;
  const std::string* first = nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = all[i].find(step);
    if (found != all[i].end() && first == nullptr) first = &found->second;
    if (found != all[i].end() && found->second == *first) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text;
}

}  // namespace

void warn_of_ignored(const Catalog& catalog, const std::function<void(const std::string&)>& warn) {
  for (std::size_t i = 0; i < std::min(catalog.ignored.size(), kLinesMax); ++i) {
    warn(catalog.ignored[i].path.string() + " " + catalog.ignored[i].reason + "; ignored");
  }
  if (catalog.ignored.size() > kLinesMax) {
    warn(std::to_string(catalog.ignored.size() - kLinesMax) + " more entries ignored");
  }
}

std::vector<std::int64_t> steps_on_all_ranks(const Catalog& catalog, comm::Comm& comm,
                                             const std::filesystem::path& folder,
                                             const std::function<void(const std::string&)>& warn) {
  const std::vector<StepsOfRank> all = gather(catalog, comm);
  std::map<std::int64_t, std::string> lacking;
  for (const StepsOfRank& steps : all) {
    for (const auto& [step, checksum] : steps) lacking[step] = ranks_without(all, step);
  }
  std::vector<std::int64_t> common;
  std::string sentence;
  for (const auto& [step, ranks] : lacking) {
    if (ranks.empty()) {
      common.push_back(step);
      continue;
    }
    sentence = (folder / folder_name(step)).string() + " is missing or different on global rank " +
               ranks + ": the checkpoint folder must be the same on every node";
    warn(sentence);
  }
  if (common.empty() && !lacking.empty()) throw CheckpointError(sentence);
  return common;
}

void expect_same_model(const LoadTarget& target, const Loaded& loaded) {
  const bool same_buffers = std::ranges::is_permutation(target.buffers, loaded.manifest.buffers);
  if (loaded.manifest.layout == layout_checksum(target.tensors) && same_buffers) return;
  throw CheckpointError("checkpoint " + loaded.folder.string() +
                        " belongs to another model: " + join(differences(target, loaded)) +
                        "; use its model, or another trainer.default_root_dir");
}

std::string first_failure(comm::Comm& comm, const std::string& mine) {
  const auto all = comm.all_gather_bytes(std::as_bytes(std::span(mine)));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    return (i == 0 ? "" : "global rank " + std::to_string(i) + ": ") + text_of(all[i]);
  }
  return {};
}

}  // namespace lrun::checkpoint
