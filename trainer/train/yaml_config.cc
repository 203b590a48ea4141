#include "trainer/train/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "trainer/loop/errors.h"

namespace lrun::train {
namespace {

using loop::UsageError;

// A larger file is not a configuration.
constexpr std::size_t kFileBytesMax = 1 << 20;

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UsageError("cannot read configuration " + file.string() + ": it is a folder");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw UsageError("cannot read configuration " + file.string() + ": " + std::strerror(errno));
  }
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (text.size() > kFileBytesMax) {
    throw UsageError("configuration " + file.string() + " is larger than 1 MiB");
  }
  return text;
}

std::string unknown_key(const std::string& path) {
  const std::string nearest = nearest_key(path);
  std::string sentence = "unknown key '" + path + "'";
  if (!nearest.empty()) sentence += "; did you mean '" + nearest + "'?";
  return sentence + (nearest.empty() ? "; lrun-train --print-config lists all keys" : "");
}

std::string wrong_value(const Key& key, const std::string& text) {
  return key.path + " is '" + text + "'; accepted: " + accepted(key);
}

// Walks one file and assigns each scalar to its key.
class FileReader {
 public:
  FileReader(std::string file, Config& config) : file_(std::move(file)), keys_(keys(config)) {}

  void read(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) fail(root, "the configuration must be a block of keys, such as 'seed: 42'");
    read_block(root, "");
  }

 private:
  void read_block(const YAML::Node& block, const std::string& prefix) {
    std::set<std::string> seen;
    for (const auto& pair : block) {
      if (!pair.first.IsScalar()) fail(pair.first, "a key must be a word");
      const std::string path = prefix + pair.first.Scalar();
      if (!seen.insert(path).second) fail(pair.first, "key '" + path + "' is given twice");
      read_value(pair.first, path, pair.second);
    }
  }

  void read_value(const YAML::Node& name, const std::string& path, const YAML::Node& value) {
    const auto key = std::ranges::find(keys_, path, &Key::path);
    if (key == keys_.end()) {
      if (!is_section(path)) fail(name, unknown_key(path));
      if (value.IsNull()) return;
      if (!value.IsMap()) fail(name, "'" + path + "' must be a block of keys");
      read_block(value, path + ".");
      return;
    }
    if (value.IsNull()) fail(name, wrong_value(*key, ""));
    if (!value.IsScalar())
      fail(name, key->path + " must be one value; accepted: " + accepted(*key));
    if (!assign(*key, value.Scalar())) fail(name, wrong_value(*key, value.Scalar()));
  }

  bool is_section(const std::string& path) const {
    return std::ranges::any_of(keys_,
                               [&](const Key& key) { return key.path.starts_with(path + "."); });
  }

  [[noreturn]] void fail(const YAML::Node& where, const std::string& sentence) const {
    throw UsageError(file_ + ":" + std::to_string(where.Mark().line + 1) + ": " + sentence);
  }

  std::string file_;
  std::vector<Key> keys_;
};

void read_file(const std::filesystem::path& file, Config& config) {
  const std::string text = read_text(file);
  try {
    FileReader(file.string(), config).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    throw UsageError(file.string() + ":" + std::to_string(error.mark.line + 1) +
                     ": not valid YAML: " + error.msg);
  }
}

void apply_override(const std::string& override_text, Config& config) {
  const std::size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("'" + override_text +
                     "' is not an override; accepted: KEY=VALUE, such as trainer.max_epochs=2");
  }
  const std::string path = override_text.substr(0, equals);
  const std::string value = override_text.substr(equals + 1);
  for (const Key& key : keys(config)) {
    if (key.path != path) continue;
    if (!assign(key, value)) throw UsageError(wrong_value(key, value));
    return;
  }
  throw UsageError(unknown_key(path));
}

}  // namespace

Config read_config(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Config config;
  if (!file.empty()) read_file(file, config);
  for (const std::string& text : overrides) apply_override(text, config);
  return config;
}

std::string to_yaml(const Config& config) {
  Config copy = config;
  YAML::Emitter out;
  std::string section;
  out << YAML::BeginMap;
  for (const Key& key : keys(copy)) {
    const std::size_t dot = key.path.find('.');
    const std::string parent = dot == std::string::npos ? "" : key.path.substr(0, dot);
    if (parent != section && !section.empty()) out << YAML::EndMap;
    if (parent != section && !parent.empty())
      out << YAML::Key << parent << YAML::Value << YAML::BeginMap;
    section = parent;
    out << YAML::Key << key.path.substr(dot == std::string::npos ? 0 : dot + 1);
    out << YAML::Value << spell(key);
  }
  if (!section.empty()) out << YAML::EndMap;
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace lrun::train
