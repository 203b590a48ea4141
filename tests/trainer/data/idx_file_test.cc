// Data sets that are missing, cut, damaged or of another kind: one sentence that names the file.
#include "trainer/data/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/trainer/data/idx_writer.h"
#include "trainer/data/dataset.h"

namespace lrun::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class IdxFile : public ::testing::Test {
 protected:
  void SetUp() override { write_images(folder_.path(), "train", 20, 4); }

  std::filesystem::path images() const { return folder_.path() / "train-images-idx3-ubyte"; }
  std::filesystem::path labels() const { return folder_.path() / "train-labels-idx1-ubyte"; }

  std::string failure() const {
    try {
      read_labelled_images(folder_.path(), "train", 10);
    } catch (const DatasetError& error) {
      return error.what();
    }
    return "";
  }

  // Replaces a plain file by its gzip.
  static std::filesystem::path compress(const std::filesystem::path& plain) {
    const std::filesystem::path packed = plain.string() + ".gz";
    const std::string bytes = read_file(plain);
    gzFile file = gzopen(packed.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    std::filesystem::remove(plain);
    return packed;
  }

  TemporaryFolder folder_;
};

TEST_F(IdxFile, ReadsPlainAndGzip) {
  const LabelledImages plain = read_labelled_images(folder_.path(), "train", 10);
  compress(images());
  compress(labels());
  const LabelledImages packed = read_labelled_images(folder_.path(), "train", 10);
  EXPECT_EQ(plain.count, 20);
  EXPECT_EQ(plain.rows, 4);
  EXPECT_EQ(plain.columns, 4);
  EXPECT_EQ(plain.labels[13], 3);
  EXPECT_EQ(packed.pixels, plain.pixels);
  EXPECT_EQ(fingerprint(packed), fingerprint(plain));
}

TEST_F(IdxFile, FingerprintSeesEveryByte) {
  LabelledImages set = read_labelled_images(folder_.path(), "train", 10);
  const std::string before = fingerprint(set);
  set.labels[3] ^= 1;
  EXPECT_NE(fingerprint(set), before);
  set.labels[3] ^= 1;
  set.pixels[100] ^= 1;
  EXPECT_NE(fingerprint(set), before);
}

TEST_F(IdxFile, NamesMissingFolderAndFile) {
  std::filesystem::remove(labels());
  EXPECT_THAT(failure(), AllOf(HasSubstr("train-labels-idx1-ubyte.gz is missing"),
                               HasSubstr("dataset-fashion-mnist"), HasSubstr("data.path")));
  std::filesystem::remove_all(folder_.path());
  EXPECT_THAT(failure(), AllOf(HasSubstr(folder_.path().string()), HasSubstr("is missing")));
}

TEST_F(IdxFile, NamesTruncatedFile) {
  std::filesystem::resize_file(images(), 100);
  EXPECT_THAT(failure(), AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("truncated"),
                               Not(HasSubstr("\n"))));
}

TEST_F(IdxFile, NamesTruncatedAndDamagedGzip) {
  const std::filesystem::path packed = compress(images());
  const std::string whole = read_file(packed);
  write_file(packed, whole.substr(0, whole.size() - 30));
  EXPECT_THAT(failure(), HasSubstr("train-images-idx3-ubyte.gz is "));
  std::string flipped = whole;
  flipped[whole.size() - 6] = static_cast<char>(flipped[whole.size() - 6] ^ 1);  // the check value
  write_file(packed, flipped);
  EXPECT_THAT(failure(), AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("damaged")));
}

TEST_F(IdxFile, NamesWrongMagic) {
  write_file(images(), "not a data set, but long enough to have a header");
  EXPECT_THAT(failure(), AllOf(HasSubstr("IDX file of images"), HasSubstr("0x00000803")));
}

TEST_F(IdxFile, RefusesHeadersThatPromiseTooMuch) {
  write_file(images(), idx_bytes(0x803, {0xffffffff, 4000, 4000}, "x"));
  EXPECT_THAT(failure(), HasSubstr("impossible header"));
}

TEST_F(IdxFile, NamesMoreBytesThanPromised) {
  write_file(images(), read_file(images()) + "x");
  EXPECT_THAT(failure(), HasSubstr("more bytes"));
}

TEST_F(IdxFile, NamesCountsThatDiffer) {
  write_file(labels(), idx_bytes(0x801, {19}, std::string(19, '\1')));
  EXPECT_THAT(failure(), HasSubstr("19 labels for 20 images"));
}

TEST_F(IdxFile, NamesLabelsOutOfRange) {
  write_file(labels(), idx_bytes(0x801, {20}, std::string(20, '\12')));
  EXPECT_THAT(failure(), HasSubstr("label 10"));
}

}  // namespace
}  // namespace lrun::data
