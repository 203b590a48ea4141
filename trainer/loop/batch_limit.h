// limit_train_batches and its kin: a count of batches, or a fraction of them.
//
// Pure. Spelling as in Lightning: an integer counts, a number with a point is a fraction; 1.0 is
// all batches, 0 none.
#pragma once

#include <cstdint>
#include <string>

namespace lrun::loop {

struct BatchLimit {
  bool is_fraction = true;
  double value = 1.0;
  friend bool operator==(const BatchLimit&, const BatchLimit&) = default;
};

// Batches to run out of `available`. A fraction above 0 gives at least one.
std::int64_t limited(const BatchLimit& limit, std::int64_t available);

// "100", "0.25"; false for anything else.
bool parse_batch_limit(const std::string& text, BatchLimit* limit);
std::string to_string(const BatchLimit& limit);

}  // namespace lrun::loop
