// The safetensors format and its bounds checks; both ways with Python's package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/trainer/checkpoint/saves.h"
#include "tests/trainer/data/idx_writer.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/preflight.h"
#include "trainer/checkpoint/safetensors.h"

namespace lrun::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Safetensors : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "x.safetensors"; }

  void write_sample() {
    DurableFile output(file());
    write_safetensors(output,
                      {{.name = "matrix",
                        .dtype = "F32",
                        .shape = {2, 3},
                        .bytes = std::as_bytes(std::span(floats_))},
                       {.name = "counts",
                        .dtype = "I64",
                        .shape = {2},
                        .bytes = std::as_bytes(std::span(integers_))},
                       {.name = "none", .dtype = "F32", .shape = {0}, .bytes = {}}},
                      {{"who", "test"}});
    output.finish();
  }

  void write_raw(const std::string& header, const std::string& bytes) {
    const std::uint64_t length = header.size();
    std::string text(sizeof length, '\0');
    std::memcpy(text.data(), &length, sizeof length);
    data::write_file(file(), text + header + bytes);
  }

  std::string failure() const {
    try {
      read_safetensors_header(file());
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  }

  data::TemporaryFolder folder_;
  std::vector<float> floats_ = {1, 2, 3, 4, 5, -6.5F};
  std::vector<std::int64_t> integers_ = {-1, std::int64_t{1} << 40};
};

TEST_F(Safetensors, ReadsWhatItWrote) {
  write_sample();
  const SafetensorsHeader header = read_safetensors_header(file());
  ASSERT_EQ(header.tensors.size(), 3U);
  EXPECT_EQ(header.metadata.at("who"), "test");
  const TensorEntry& matrix = header.tensors.at("matrix");
  EXPECT_EQ(matrix.shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> read(6);
  stream_file(file(), [&](std::int64_t offset, std::span<const std::byte> bytes) {
    ASSERT_EQ(offset, 0);
    std::memcpy(read.data(), bytes.data() + matrix.begin, 24);
  });
  EXPECT_EQ(read, floats_);
}

TEST_F(Safetensors, RefusesExtentsOutsideTheFile) {
  write_raw(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "only eight");
  EXPECT_THAT(failure(), AllOf(HasSubstr(file().string()), HasSubstr("'a' lies outside")));
  write_raw(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "12345678");
  EXPECT_THAT(failure(), HasSubstr("outside"));
  write_raw(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "12345678");
  EXPECT_NE(failure(), "");
}

TEST_F(Safetensors, RefusesLengthsThatShapesDoNotExplain) {
  write_raw(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678");
  EXPECT_THAT(failure(), HasSubstr("its shape does not explain"));
  write_raw(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "12345678");
  EXPECT_THAT(failure(), HasSubstr("does not explain"));
  // A product that overflows 64 bits to the right length.
  write_raw(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}})", "");
  EXPECT_THAT(failure(), HasSubstr("does not explain"));
  write_raw(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678");
  EXPECT_THAT(failure(), HasSubstr("does not explain"));
}

TEST_F(Safetensors, RefusesOverlapsAndBrokenHeaders) {
  write_raw(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
            "12345678");
  EXPECT_THAT(failure(), HasSubstr("overlap"));
  write_raw("{\"a\":", "");
  EXPECT_THAT(failure(), HasSubstr("header is not valid"));
  write_raw(R"({"a":7})", "");
  EXPECT_NE(failure(), "");
  data::write_file(file(), "abc");
  EXPECT_THAT(failure(), HasSubstr("truncated"));
  data::write_file(file(), std::string(64, '\xff'));
  EXPECT_THAT(failure(), HasSubstr("truncated"));
  std::filesystem::remove(file());
  EXPECT_THAT(failure(), HasSubstr("cannot be opened"));
}

TEST_F(Safetensors, PythonReadsOursAndWeReadPythons) {
  const char* python = std::getenv("LRUN_PEER_PYTHON");
  if (python == nullptr || *python == '\0') GTEST_SKIP() << "LRUN_PEER_PYTHON is not set";
  write_sample();
  const auto script = folder_.path() / "peer.py";
  data::write_file(
      script,
      "import sys, numpy\n"
      "from safetensors.numpy import load_file, save_file\n"
      "read = load_file(sys.argv[1])\n"
      "assert read['matrix'].tolist() == [[1, 2, 3], [4, 5, -6.5]], read\n"
      "assert read['counts'].tolist() == [-1, 2**40], read\n"
      "assert read['none'].shape == (0,), read\n"
      "save_file({'theirs': numpy.arange(5, dtype=numpy.float32),\n"
      "           'flag': numpy.array([True, False])}, sys.argv[2], {'by': 'python'})\n");
  const auto theirs = folder_.path() / "theirs.safetensors";
  const std::string command =
      std::string(python) + " " + script.string() + " " + file().string() + " " + theirs.string();
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const SafetensorsHeader header = read_safetensors_header(theirs);
  EXPECT_EQ(header.metadata.at("by"), "python");
  EXPECT_EQ(header.tensors.at("flag").dtype, "BOOL");
  const TensorEntry& entry = header.tensors.at("theirs");
  const std::string bytes = data::read_file(theirs);
  std::vector<float> values(5);
  std::memcpy(values.data(), bytes.data() + entry.begin, 20);
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4}));
}

TEST(Manifest, RoundTripKeepsEverything) {
  Manifest manifest{.generation = {3, 18446744073709551615U},
                    .step = 1200,
                    .world_size = 2,
                    .layout = "abc",
                    .kinds = {"param"},
                    .files = {{.name = "f", .bytes = 7, .checksum = "00", .begin = 0, .end = 9}},
                    .tensors = {{.name = "w", .shape = {3, 3}, .offset = 0, .elements = 9}},
                    .buffers = {"b"},
                    .state = state_of_step(1200)};
  EXPECT_EQ(manifest_from_json(to_json(manifest)), manifest);
}

TEST(Manifest, RefusesOtherVersions) {
  std::string text = to_json(Manifest{});
  const std::size_t place = text.find("\"version\": 1");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, 12, "\"version\": 2");
  try {
    manifest_from_json(text);
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("version 2"));
  }
}

TEST(Preflight, AcceptsARoomyFolderAndLeavesNothing) {
  const data::TemporaryFolder folder;
  EXPECT_EQ(check_folder(folder.path() / "new", 1 << 20, GlobalRank{0}), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "new"));
}

TEST(Preflight, NamesAFolderThatCannotBe) {
  const data::TemporaryFolder folder;
  data::write_file(folder.path() / "file", "x");
  EXPECT_THAT(
      check_folder(folder.path() / "file" / "sub", 1, GlobalRank{0}),
      AllOf(HasSubstr("not usable"), HasSubstr("file"), HasSubstr("trainer.default_root_dir")));
  EXPECT_THAT(check_folder("/proc/lrun", 1, GlobalRank{0}), HasSubstr("/proc/lrun"));
}

// B095: too little room is found out before training.
TEST(Preflight, B095_NamesMissingRoom) {
  const data::TemporaryFolder folder;
  EXPECT_THAT(check_folder(folder.path(), std::int64_t{1} << 60, GlobalRank{0}),
              AllOf(HasSubstr("MiB more"), HasSubstr("checkpoint.keep_last")));
}

}  // namespace
}  // namespace lrun::checkpoint
