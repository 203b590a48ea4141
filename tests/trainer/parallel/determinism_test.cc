#include "trainer/parallel/determinism.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "trainer/parallel/fingerprint.h"

namespace lrun::parallel {
namespace {

TEST(Determinism, PinsWhatTheIdentityRecords) {
  ::unsetenv("MKL_CBWR");
  pin_arithmetic();
  const auto identity = arithmetic_identity();
  EXPECT_EQ(identity.at("threads"), "1");
  EXPECT_EQ(identity.at("mkl_cbwr"), "AVX2,STRICT");
  EXPECT_EQ(identity.at("torch").substr(0, 5), "2.11.");
  EXPECT_FALSE(identity.at("cpu_capability").empty());
  EXPECT_FALSE(identity.at("cpu_vendor").empty());
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
}

TEST(Determinism, TheUsersCodePathIsKept) {
  ::setenv("MKL_CBWR", "AVX512", 1);
  pin_arithmetic();
  EXPECT_EQ(arithmetic_identity().at("mkl_cbwr"), "AVX512");
}

TEST(Determinism, NoThreadIsRefused) { EXPECT_THROW(pin_arithmetic(0), std::invalid_argument); }

// FIPS 180-2, appendix B.1.
TEST(Fingerprint, IsSha256) {
  Sha256 hash;
  hash.add(std::string("ab"));
  hash.add(std::string("c"));
  EXPECT_EQ(hash.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace lrun::parallel
