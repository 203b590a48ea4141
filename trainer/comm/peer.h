// A connected peer: its data path and its control connection.
#pragma once

#include <memory>

#include "proto/ids.h"
#include "trainer/comm/control.h"
#include "trainer/comm/link.h"

namespace lrun::comm {

struct Peer {
  GlobalRank rank;
  std::unique_ptr<Link> link;
  Control control;
};

}  // namespace lrun::comm
