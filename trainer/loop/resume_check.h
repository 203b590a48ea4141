// May this run go on from that checkpoint?
//
// Pure: compares what was saved with what is configured now.
#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"

namespace lrun::loop {

// Empty, or one sentence: seed, leaves, leaf size or data set differ, so the order of samples or
// the sums of gradients would not be those of the run that is continued.
std::string resume_conflict(const checkpoint::TrainingState& saved,
                            const checkpoint::TrainingState& now);

// One line each: allowed, but the run will not be what it would have been (learning rates, bits).
std::vector<std::string> resume_warnings(const checkpoint::TrainingState& saved,
                                         const checkpoint::TrainingState& now);

}  // namespace lrun::loop
