// Configuration files: YAML with dotted overrides.
//
// Owns the file format and the sentences for mistakes; refuses to know what a key means (config.h).
// Nothing starts before the whole configuration is accepted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/train/config.h"

namespace lrun::train {

// Reads `file` (empty: defaults only), then applies `overrides` ("trainer.max_epochs=2") in order.
// Throws loop::UsageError: not readable, not YAML, unknown or repeated key (with the nearest known
// one), wrong value.
Config read_config(const std::filesystem::path& file, const std::vector<std::string>& overrides);

// The whole configuration as a file that read_config accepts.
std::string to_yaml(const Config& config);

}  // namespace lrun::train
