#include "trainer/parallel/agreement.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>

namespace lrun::parallel {
namespace {

using Digest = XXH128_hash_t;

std::span<std::byte> bytes_of(at::Tensor& values) {
  return std::as_writable_bytes(
      std::span(values.data_ptr<float>(), static_cast<std::size_t>(values.numel())));
}

// The digests of all ranks, in rank order.
std::vector<Digest> gather_digests(std::span<const std::byte> bytes, comm::Comm& comm) {
  const Digest mine = XXH3_128bits(bytes.data(), bytes.size());
  std::vector<Digest> digests;
  for (const auto& theirs : comm.all_gather_bytes(std::as_bytes(std::span(&mine, 1)))) {
    Digest digest{};
    std::memcpy(&digest, theirs.data(), std::min(theirs.size(), sizeof digest));
    digests.push_back(digest);
  }
  return digests;
}

// The first rank whose digest differs from rank 0's; −1: none.
int first_different(const std::vector<Digest>& digests) {
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (XXH128_isEqual(digests[rank], digests[0]) == 0) return static_cast<int>(rank);
  }
  return -1;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<std::string> split(std::span<const std::byte> text) {
  std::vector<std::string> lines(1);
  for (const std::byte letter : text) {
    if (static_cast<char>(letter) == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += static_cast<char>(letter);
    }
  }
  lines.pop_back();  // the text ends with a newline
  return lines;
}

std::string line_or_end(const std::vector<std::string>& lines, std::size_t i) {
  return i < lines.size() ? lines[i] : "nothing more";
}

[[noreturn]] void throw_difference(const std::vector<std::string>& first,
                                   const std::vector<std::string>& other, int other_rank) {
  std::size_t i = 0;
  while (i < first.size() && i < other.size() && first[i] == other[i]) ++i;
  throw std::runtime_error("global rank 0 has " + line_or_end(first, i) + " where global rank " +
                           std::to_string(other_rank) + " has " + line_or_end(other, i) +
                           ": build the same model with the same options on every rank");
}

}  // namespace

void require_agreement(const std::vector<std::string>& lines, comm::Comm& comm) {
  const std::string text = join(lines);
  const auto bytes = std::as_bytes(std::span(text));
  const int different = first_different(gather_digests(bytes, comm));
  if (different < 0) return;
  const auto texts = comm.all_gather_bytes(bytes);
  throw_difference(split(texts[0]), split(texts[static_cast<std::size_t>(different)]), different);
}

void broadcast_values(at::Tensor& values, comm::Comm& comm) {
  if (comm.world_size() == 1) return;
  comm.broadcast(bytes_of(values), GlobalRank{0});
  const int different = first_different(gather_digests(bytes_of(values), comm));
  if (different < 0) return;
  throw std::runtime_error("global rank " + std::to_string(different) +
                           " received other initial parameters than global rank 0 sent: its memory "
                           "or the transport is faulty");
}

}  // namespace lrun::parallel
