// A Comm that notes what is issued, and can fail on request; everything else is done by a real one.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/comm.h"

namespace lrun::parallel {

class RecordingComm final : public comm::Comm {
 public:
  explicit RecordingComm(comm::Comm& real) : real_(real) {}

  // Called with the name of each operation before it is issued; may throw.
  std::function<void(const std::string& operation)> on_issue = [](const std::string&) {};

  // Bytes sent by all_gather_bytes while nothing else was under way.
  std::uint64_t message_bytes() const { return message_bytes_; }

  GlobalRank rank() const override { return real_.rank(); }
  int world_size() const override { return real_.world_size(); }
  comm::Handle reduce_scatter(std::span<const comm::SubtreeSum> mine, int leaves,
                              std::span<const comm::Range> shards,
                              std::span<float> result) override {
    on_issue("reduce_scatter");
    return real_.reduce_scatter(mine, leaves, shards, result);
  }
  comm::Handle all_gather(std::span<float> whole, std::span<const comm::Range> shards) override {
    on_issue("all_gather");
    return real_.all_gather(whole, shards);
  }
  comm::Handle all_reduce(std::span<const comm::SubtreeSum> mine, int leaves,
                          std::span<float> result) override {
    on_issue("all_reduce");
    return real_.all_reduce(mine, leaves, result);
  }
  std::vector<std::vector<std::byte>> all_gather_bytes(std::span<const std::byte> mine) override {
    on_issue("all_gather_bytes");
    const std::uint64_t before = real_.counters().sent_bytes;
    auto gathered = real_.all_gather_bytes(mine);
    message_bytes_ += real_.counters().sent_bytes - before;
    return gathered;
  }
  void broadcast(std::span<std::byte> bytes, GlobalRank root) override {
    on_issue("broadcast");
    real_.broadcast(bytes, root);
  }
  void barrier() override { real_.barrier(); }
  void abort(const std::string& reason) override { real_.abort(reason); }
  comm::Counters counters() const override { return real_.counters(); }
  void on_pulse(std::function<void(GlobalRank)> pulse) override {
    real_.on_pulse(std::move(pulse));
  }

 private:
  comm::Comm& real_;
  std::uint64_t message_bytes_ = 0;
};

}  // namespace lrun::parallel
