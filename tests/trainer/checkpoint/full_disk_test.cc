// A disk that fills up while saving.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "tests/trainer/checkpoint/saves.h"
#include "tests/trainer/data/idx_writer.h"
#include "trainer/checkpoint/catalog.h"

namespace lrun::checkpoint {
namespace {

// A file system of one MiB; unmounted whatever the test does.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path place) : place_(std::move(place)) {
    std::filesystem::create_directories(place_);
    mounted_ = ::mount("tmpfs", place_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) reason_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  bool is_mounted() const { return mounted_; }
  const std::string& reason() const { return reason_; }

 private:
  std::filesystem::path place_;
  bool mounted_ = false;
  std::string reason_;
};

// B094: a failed write leaves the older checkpoint newest, and no half one.
TEST(FullDisk, B094_TheOlderCheckpointStaysTheNewest) {
  const data::TemporaryFolder folder;
  const SmallDisk disk(folder.path() / "disk");
  if (!disk.is_mounted()) GTEST_SKIP() << "cannot mount a tmpfs: " << disk.reason();
  const auto comm = alone();
  const auto checkpoints = folder.path() / "disk" / "checkpoints";
  std::int64_t last_saved = 0;
  std::string error;
  for (std::int64_t step = 1; step < 20 && error.empty(); ++step) {
    const SaveOutcome outcome = save_step(*comm, checkpoints, step, 99);
    if (outcome.is_saved()) last_saved = step;
    error = outcome.error;
  }
  EXPECT_THAT(error, ::testing::HasSubstr("the disk is full"));
  EXPECT_GT(last_saved, 0);
  EXPECT_EQ(load_alone(checkpoints), last_saved);
  EXPECT_TRUE(read_catalog(checkpoints).ignored.empty());
  // With room again the next save succeeds.
  std::filesystem::remove_all(checkpoints / folder_name(1));
  EXPECT_TRUE(save_step(*comm, checkpoints, 50, 99).is_saved());
}

}  // namespace
}  // namespace lrun::checkpoint
