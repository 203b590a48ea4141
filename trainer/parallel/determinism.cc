#include "trainer/parallel/determinism.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace lrun::parallel {
namespace {

constexpr const char* kMklCodePath = "MKL_CBWR";

std::string environment_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// Libraries choose their kernels by vendor too, not by instruction set alone.
std::string cpu_vendor() {
#if defined(__x86_64__)
  unsigned int highest = 0;
  std::array<unsigned int, 3> letters{};  // EBX, EDX, ECX spell the name
  if (__get_cpuid(0, &highest, &letters[0], &letters[2], &letters[1]) == 0) return "unknown";
  std::string name(sizeof letters, ' ');
  std::memcpy(name.data(), letters.data(), sizeof letters);
  return name;
#else
  return "unknown";
#endif
}

}  // namespace

void pin_arithmetic(int threads) {
  if (threads < 1) {
    throw std::invalid_argument("threads per worker = " + std::to_string(threads) +
                                " is not possible: give 1 or more");
  }
  // STRICT: results of a matrix product do not depend on the alignment of its operands either.
  ::setenv(kMklCodePath, "AVX2,STRICT", /*overwrite=*/0);
  at::set_num_threads(threads);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  // Would fill every new tensor with NaN first: a cost, and no cure for anything here.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicMkldnn(true);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

std::map<std::string, std::string> arithmetic_identity() {
  return {
      {"cpu_capability", at::get_cpu_capability()},
      {"cpu_vendor", cpu_vendor()},
      {"mkl_cbwr", environment_or(kMklCodePath, "unset")},
      {"onednn_max_cpu_isa", environment_or("ONEDNN_MAX_CPU_ISA", "unset")},
      {"threads", std::to_string(at::get_num_threads())},
      {"torch", TORCH_VERSION},
  };
}

}  // namespace lrun::parallel
