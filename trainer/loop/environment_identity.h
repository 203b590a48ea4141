// What decides the bits of training arithmetic besides the program: CPU capability, LibTorch's
// version, threads, MKL's code path (trainer.md §3.4).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lrun::loop {

std::map<std::string, std::string> environment_identity();

// "threads was 1 and is 2", one for each key whose value differs or is missing on one side.
std::vector<std::string> differences(const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& now);

}  // namespace lrun::loop
