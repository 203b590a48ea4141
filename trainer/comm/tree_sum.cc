#include "trainer/comm/tree_sum.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lrun::comm {
namespace {

// Elements of one pass: partial sums of a pass stay in the first-level cache.
constexpr std::int64_t kPassElements = 1024;

// Plain on purpose: vectorised by the compiler, and each element has exactly one addition.
void add_arrays(const float* left, const float* right, float* target, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) target[i] = left[i] + right[i];
}

}  // namespace

TreeSum::TreeSum(std::span<const Subtree> terms, int leaves) {
  if (leaves < 1 || terms.empty()) throw std::invalid_argument("a sum needs at least one leaf");
  plan({0, leaves}, terms, 0);
  if (terms_ != static_cast<int>(terms.size())) {
    throw std::invalid_argument("the subtrees do not tile " + std::to_string(leaves) + " leaves");
  }
  if (!steps_.empty()) steps_.back().target = {Place::Kind::Out, 0};
}

TreeSum::Place TreeSum::plan(Subtree node, std::span<const Subtree> terms, int free_partial) {
  const auto next = static_cast<std::size_t>(terms_);
  if (next < terms.size() && terms[next] == node) return {Place::Kind::Term, terms_++};
  if (node.leaves() < 2) {
    throw std::invalid_argument("no subtree covers leaf " + std::to_string(node.first));
  }
  const int middle = split_of(node);
  const Place left = plan({node.first, middle}, terms, free_partial);
  // The right side must not overwrite the left side's partial sum.
  const int free_right = left.kind == Place::Kind::Partial ? free_partial + 1 : free_partial;
  const Place right = plan({middle, node.last}, terms, free_right);
  const Place target{Place::Kind::Partial, free_partial};
  steps_.push_back({left, right, target});
  partials_ = std::max(partials_, free_partial + 1);
  return target;
}

void TreeSum::add(std::span<const float* const> terms, float* out, std::int64_t elements) const {
  if (steps_.empty()) {
    if (elements > 0) {
      std::memmove(out, terms[0], static_cast<std::size_t>(elements) * sizeof(float));
    }
    return;
  }
  std::vector<float> partials(static_cast<std::size_t>(partials_ * kPassElements));
  for (std::int64_t begin = 0; begin < elements; begin += kPassElements) {
    const auto at = [&](Place place) -> const float* {
      switch (place.kind) {
        case Place::Kind::Term:
          return terms[static_cast<std::size_t>(place.index)] + begin;
        case Place::Kind::Partial:
          return partials.data() + place.index * kPassElements;
        case Place::Kind::Out:
          return out + begin;
      }
      return nullptr;
    };
    for (const Step& step : steps_) {
      float* target = step.target.kind == Place::Kind::Out
                          ? out + begin
                          : partials.data() + step.target.index * kPassElements;
      add_arrays(at(step.left), at(step.right), target, std::min(kPassElements, elements - begin));
    }
  }
}

}  // namespace lrun::comm
