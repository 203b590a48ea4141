#include "trainer/comm/comm.h"

#include <stdexcept>
#include <string>

#include "trainer/comm/connector.h"
#include "trainer/comm/group_comm.h"

namespace lrun::comm {

std::unique_ptr<Comm> Comm::connect(const Options& options, Bootstrap* bootstrap) {
  if (options.world_size < 1 || options.rank.value < 0 ||
      options.rank.value >= options.world_size) {
    throw std::invalid_argument("rank " + std::to_string(options.rank.value) +
                                " is not in a world of " + std::to_string(options.world_size));
  }
  if (options.world_size > 1 && bootstrap == nullptr) {
    throw std::invalid_argument("a world of more than one rank needs a bootstrap");
  }
  Doorbell doorbell = Doorbell::create();
  std::vector<Peer> peers;
  if (options.world_size > 1) peers = Connector(options, *bootstrap, doorbell).connect();
  return std::make_unique<GroupComm>(options, std::move(peers), std::move(doorbell));
}

}  // namespace lrun::comm
