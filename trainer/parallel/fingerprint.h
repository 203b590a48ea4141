// SHA-256 over pieces of memory, for hashes that people compare.
//
// Called by DataParallel (weights, agreement between ranks) and tests.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lrun::parallel {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  void add(const std::string& text);
  // 64 hexadecimal digits. Once; nothing may be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lrun::parallel
