// One collective operation as it waits in the queue of the communication thread.
//
// Owns no payload: the caller's buffers stay alive until the completion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/comm/completion.h"
#include "trainer/comm/header.h"
#include "trainer/comm/schedule.h"
#include "trainer/comm/tree_sum.h"

namespace lrun::comm {

struct Operation {
  OperationHeader header;
  Collective collective;
  // This rank's subtree sums, each the whole buffer; and how those of all ranks are added.
  std::vector<const float*> mine;
  std::optional<TreeSum> sum;
  // Where sums and received values go and values to send come from: element `result_begin` of the
  // whole buffer lies at `result`.
  std::byte* result = nullptr;
  std::int64_t result_begin = 0;
  std::shared_ptr<Completion> completion = std::make_shared<Completion>();
};

}  // namespace lrun::comm
