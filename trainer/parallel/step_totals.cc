#include "trainer/parallel/step_totals.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "trainer/optim/clip.h"

namespace lrun::parallel {
namespace {

struct MessageHead {
  std::int64_t count = 0;
  std::int64_t leaves = 0;
};

void append(std::vector<std::byte>& message, std::span<const std::byte> bytes) {
  message.insert(message.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> encode(const RankTotals& totals) {
  const MessageHead head{totals.count, static_cast<std::int64_t>(totals.leaf_losses.size())};
  std::vector<std::byte> message;
  append(message, std::as_bytes(std::span(&head, 1)));
  append(message, std::as_bytes(std::span(totals.leaf_losses)));
  append(message, std::as_bytes(std::span(totals.square_sums)));
  return message;
}

RankTotals decode(std::span<const std::byte> message) {
  MessageHead head;
  TORCH_CHECK(message.size() >= sizeof head, "a peer's step totals are too short");
  std::memcpy(&head, message.data(), sizeof head);
  std::vector<double> values((message.size() - sizeof head) / sizeof(double));
  if (!values.empty()) {
    std::memcpy(values.data(), message.data() + sizeof head, values.size() * sizeof(double));
  }
  TORCH_CHECK(head.leaves >= 0 && static_cast<std::size_t>(head.leaves) <= values.size(),
              "a peer's step totals name more leaves than they hold");
  const auto border = values.begin() + head.leaves;
  return {head.count, {values.begin(), border}, {border, values.end()}};
}

}  // namespace

StepTotals exchange(const RankTotals& mine, comm::Comm& comm) {
  StepTotals totals;
  std::vector<double> square_sums;
  for (const auto& message : comm.all_gather_bytes(encode(mine))) {
    const RankTotals theirs = decode(message);
    totals.count += theirs.count;
    for (const double loss : theirs.leaf_losses) totals.loss_sum += loss;
    square_sums.insert(square_sums.end(), theirs.square_sums.begin(), theirs.square_sums.end());
  }
  totals.sum_norm = optim::norm_of(square_sums);
  return totals;
}

}  // namespace lrun::parallel
