#include "trainer/checkpoint/manifest.h"

#include <nlohmann/json.hpp>
#include <span>

#include "trainer/checkpoint/durable_file.h"

namespace lrun {

static void to_json(nlohmann::json& json, const Generation& generation) {
  json = {{"term", generation.term}, {"number", generation.number}};
}
static void from_json(const nlohmann::json& json, Generation& generation) {
  json.at("term").get_to(generation.term);
  json.at("number").get_to(generation.number);
}

namespace checkpoint {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FileRecord, name, bytes, checksum, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorRecord, name, shape, offset, elements)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, epoch, consumed, samples, optimizer_steps, seed,
                                   leaves, leaf_size, dataset, run_id, optimization, environment,
                                   loggers, config)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Manifest, generation, step, world_size, layout, kinds, files,
                                   tensors, buffers, state)

namespace {

std::string checksum_of(const nlohmann::json& json) {
  const std::string text = json.dump();
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(text)));
  return checksum.hexadecimal();
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  nlohmann::json json = manifest;
  json["format"] = "lrun-checkpoint";
  json["version"] = kManifestVersion;
  json["checksum"] = checksum_of(json);
  return json.dump(1) + "\n";
}

Manifest manifest_from_json(const std::string& text) {
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    if (json.at("format") != "lrun-checkpoint") throw CheckpointError("is no manifest of lrun");
    const int version = json.at("version").get<int>();
    if (version != kManifestVersion) {
      throw CheckpointError("has version " + std::to_string(version) + "; this program reads " +
                            std::to_string(kManifestVersion));
    }
    const auto expected = json.at("checksum").get<std::string>();
    json.erase("checksum");
    if (checksum_of(json) != expected) throw CheckpointError("is damaged (wrong checksum)");
    return json.get<Manifest>();
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError("is truncated or damaged");
  }
}

}  // namespace checkpoint
}  // namespace lrun
