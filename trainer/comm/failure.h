// Why a Comm died, as a value that travels to peers and becomes the caller's exception.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "proto/ids.h"

namespace lrun::comm {

struct Failure {
  enum class Kind : std::uint32_t { PeerLost = 1, Aborted, DeadlineExceeded, Mismatch };
  Kind kind = Kind::Aborted;
  GlobalRank peer;  // the lost one; else who said it first
  std::string sentence;
};

// Throws PeerLost, Aborted, DeadlineExceeded or Mismatch.
[[noreturn]] void throw_as_exception(const Failure& failure);

}  // namespace lrun::comm
