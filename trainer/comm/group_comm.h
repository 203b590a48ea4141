// The Comm of one process in a group: checks what the caller asks for, describes it as operations
// and hands them to the communication thread.
//
// Owns the sequence of operations; knows no sockets. One thread issues, as Comm says.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/comm.h"
#include "trainer/comm/engine.h"
#include "trainer/comm/operation.h"

namespace lrun::comm {

class GroupComm final : public Comm {
 public:
  // `peers`: all other ranks, in order.
  GroupComm(const Options& options, std::vector<Peer> peers, Doorbell doorbell);

  GlobalRank rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  Handle reduce_scatter(std::span<const SubtreeSum> mine, int leaves, std::span<const Range> shards,
                        std::span<float> result) override;
  Handle all_gather(std::span<float> whole, std::span<const Range> shards) override;
  Handle all_reduce(std::span<const SubtreeSum> mine, int leaves, std::span<float> result) override;
  std::vector<std::vector<std::byte>> all_gather_bytes(std::span<const std::byte> mine) override;
  void broadcast(std::span<std::byte> bytes, GlobalRank root) override;
  void barrier() override;
  void abort(const std::string& reason) override { engine_.abort(reason); }
  Counters counters() const override { return engine_.counters(); }
  void on_pulse(std::function<void(GlobalRank)> pulse) override { engine_.on_pulse(pulse); }

 private:
  // A short message, or the beginning of a longer one.
  struct Note {
    std::int64_t size = 0;
    std::array<std::byte, 248> bytes = {};
  };

  Range shard_of(std::span<const Range> shards) const;
  void add_reduction(Operation& operation, std::span<const SubtreeSum> mine, int leaves) const;
  std::vector<std::vector<std::byte>> gather_long(std::span<const std::byte> mine,
                                                  std::span<const Note> notes);
  Handle gather(std::span<std::byte> whole, std::span<const Range> shards, int element_bytes);
  Handle issue(std::unique_ptr<Operation> operation);

  const GlobalRank rank_;
  const int world_size_;
  std::uint64_t issued_ = 0;
  Engine engine_;
};

}  // namespace lrun::comm
