// Collective communication between the workers of one generation, on CPU memory.
//
// Owns connections to peers, the order of operations, and the order of additions: sums are added
// in the canonical tree over leaves, so results have the same bits for every world size. Refuses to
// know tensors, models, files; no LibTorch. Called by trainer/parallel and trainer/loop.
//
// Transports: shared memory between workers of one node, TCP between nodes; chosen per pair.
// Thread: all operations of one Comm are issued by one thread, in the same order on every rank.
// `abort()` may be called from any thread.
//
// Every operation has a deadline (Options::deadline) and throws one of the errors below; after an
// error the Comm is dead: each later operation throws the same error at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/ids.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/errors.h"
#include "trainer/comm/range.h"
#include "trainer/comm/tree.h"

namespace lrun::comm {

// The sum over the leaves of one complete subtree, as a rank computed it: fp32, the whole buffer.
struct SubtreeSum {
  Subtree subtree;
  std::span<const float> values;
};

// Bytes and operations since the Comm was made; `sent` counts payload to other ranks only.
struct Counters {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t operations = 0;
};

class Completion;

// An operation under way. Destroying an unfinished handle waits for it and drops its error.
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<Completion> completion);
  Handle(Handle&&) noexcept;
  Handle& operator=(Handle&&) noexcept;
  ~Handle();

  // Returns when the result is complete; throws the operation's error. At once when empty.
  void wait();

 private:
  std::shared_ptr<Completion> completion_;
};

class Comm {
 public:
  struct Options {
    GlobalRank rank;
    int world_size = 1;
    Generation generation;  // part of the nonce that a peer must present
    std::string host;       // the address to publish to peers; workers that share
    std::string node;       // `node` use shared memory, others TCP
    bool use_shared_memory = true;
    std::chrono::milliseconds connect_deadline = std::chrono::seconds(60);
    std::chrono::milliseconds deadline = std::chrono::minutes(5);
  };
  // Connects to every peer. World size 1 connects to nobody and needs no bootstrap (may be null).
  // Throws DeadlineExceeded naming the peers that did not come.
  static std::unique_ptr<Comm> connect(const Options& options, Bootstrap* bootstrap);

  virtual ~Comm() = default;
  virtual GlobalRank rank() const = 0;
  virtual int world_size() const = 0;

  // Sum over all leaves [0, leaves) in tree order. `mine`: the complete subtrees of this rank's
  // block, in leaf order, each with `elements` = shards.back().end values. `shards[r]` is the range
  // that rank r receives; ranges are contiguous and cover the buffer. `result`: this rank's range.
  // Buffers must stay alive and unchanged until the handle's wait() returns. In place: `result` may
  // be this rank's range of the values of one of `mine` itself (of all_reduce: all of them).
  // Throws std::invalid_argument for subtrees, shards or sizes other than these.
  virtual Handle reduce_scatter(std::span<const SubtreeSum> mine, int leaves,
                                std::span<const Range> shards, std::span<float> result) = 0;
  // `whole`: this rank's range is filled before the call, all of it after wait().
  virtual Handle all_gather(std::span<float> whole, std::span<const Range> shards) = 0;
  // The same as reduce_scatter followed by all_gather: every rank gets the whole sum.
  virtual Handle all_reduce(std::span<const SubtreeSum> mine, int leaves,
                            std::span<float> result) = 0;

  // Every rank's `mine` in rank order; sizes may differ. Blocking.
  virtual std::vector<std::vector<std::byte>> all_gather_bytes(std::span<const std::byte> mine) = 0;
  // Blocking. `bytes` has the same size on every rank.
  virtual void broadcast(std::span<std::byte> bytes, GlobalRank root) = 0;
  virtual void barrier() = 0;

  // Ends every pending operation of every rank with `Aborted`. Any thread.
  virtual void abort(const std::string& reason) = 0;

  virtual Counters counters() const = 0;

  // Called about once a second by the communication thread while an operation is pending, with the
  // first peer it waits for, and with rank() while none is. For progress lines on the channel.
  virtual void on_pulse(std::function<void(GlobalRank waiting_for)> pulse) = 0;
};

}  // namespace lrun::comm
