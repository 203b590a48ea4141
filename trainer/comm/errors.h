// How an operation of a Comm can fail. Pure.
//
// One exception type per thing the caller does next: wait for a new generation (PeerLost, Aborted),
// report whom to look at (DeadlineExceeded), or fix the program (Mismatch).
#pragma once

#include <stdexcept>
#include <string>

#include "proto/ids.h"

namespace lrun::comm {

// A peer's connection broke or it said goodbye in the middle of an operation.
class PeerLost : public std::runtime_error {
 public:
  PeerLost(const std::string& sentence, GlobalRank lost) : runtime_error(sentence), peer(lost) {}
  GlobalRank peer;
};

// `abort()` was called here or on a peer.
class Aborted : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// An operation did not end within its deadline; the sentence names the silent peers.
class DeadlineExceeded : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// Ranks called different operations, or the same with different sizes; the sentence names both.
class Mismatch : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

}  // namespace lrun::comm
