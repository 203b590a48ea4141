// What a resumed run finds: the newest complete checkpoint, whatever else lies in the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/trainer/checkpoint/saves.h"
#include "tests/trainer/data/idx_writer.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

using data::read_file;
using data::write_file;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Resume : public ::testing::Test {
 protected:
  void save(std::int64_t step, int keep_last = 3, Generation generation = {1, 1}) {
    const auto comm = alone();
    const SaveOutcome outcome = save_step(*comm, folder(), step, keep_last, generation);
    ASSERT_TRUE(outcome.is_saved()) << outcome.error;
  }
  const fs::path& folder() const { return folder_.path(); }
  fs::path of_step(std::int64_t step) const { return folder() / folder_name(step); }
  fs::path shard(std::int64_t step) const {
    return of_step(step) / "shard-00000-of-00001.safetensors";
  }
  void flip_byte(const fs::path& file, std::size_t place) {
    std::string bytes = read_file(file);
    bytes[place] = static_cast<char>(bytes[place] ^ 0x10);
    write_file(file, bytes);
  }

  data::TemporaryFolder folder_;
  std::vector<std::string> lines_;
};

TEST_F(Resume, NothingInAnEmptyOrMissingFolder) {
  EXPECT_EQ(load_alone(folder()), -1);
  EXPECT_EQ(load_alone(folder() / "missing"), -1);
}

TEST_F(Resume, FindsTheNewestAndKeepsTheLastThree) {
  for (const std::int64_t step : {5, 10, 15, 20, 25}) save(step);
  EXPECT_EQ(load_alone(folder(), &lines_), 25);
  EXPECT_TRUE(lines_.empty());
  EXPECT_EQ(read_catalog(folder()).complete.size(), 3U);
  EXPECT_FALSE(fs::exists(of_step(10)));
  EXPECT_TRUE(fs::exists(of_step(15)));
}

// B112: the newest is chosen by number, junk is named and ignored.
TEST_F(Resume, B112_LargestNumberAmongCompleteOnes) {
  save(900000, 99);
  save(9, 99);
  save(10, 99);
  save(100000, 99);
  fs::rename(of_step(9), folder() / "step_9");
  fs::rename(of_step(10), folder() / "step_10");
  fs::rename(of_step(900000), folder() / "step_0900000");
  fs::create_directory(folder() / "handpicked");
  fs::create_directory(folder() / ".tmp");
  write_file(folder() / "step_11", "a file");
  EXPECT_EQ(load_alone(folder(), &lines_), 900000);
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("handpicked"), HasSubstr("ignored"))));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr(".tmp"), HasSubstr("ignored"))));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("step_11"), HasSubstr("not a folder"))));
  EXPECT_EQ(lines_.size(), 3U);
}

// B113: the newest one lacks a shard, the manifest, or has a flipped bit.
TEST_F(Resume, B113_MissingShardIsPassedOver) {
  save(5);
  save(10);
  fs::remove(shard(10));
  EXPECT_EQ(load_alone(folder(), &lines_), 5);
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("step_00000010"), HasSubstr("lacks shard-00000"))));
}

TEST_F(Resume, B113_MissingManifestIsPassedOver) {
  save(5);
  save(10);
  fs::remove(of_step(10) / kManifestName);
  EXPECT_EQ(load_alone(folder(), &lines_), 5);
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("step_00000010"), HasSubstr("no manifest.json"))));
}

TEST_F(Resume, B113_FlippedBitsAreFoundWhereverTheyAre) {
  save(5);
  const std::string whole = [&] {
    save(10);
    return read_file(shard(10));
  }();
  for (std::size_t place = 0; place < whole.size(); place += 9973) {
    flip_byte(shard(10), place);
    lines_.clear();
    EXPECT_EQ(load_alone(folder(), &lines_), 5) << "byte " << place;
    EXPECT_THAT(lines_, Contains(AllOf(HasSubstr(shard(10).string()), HasSubstr("used instead"))));
    write_file(shard(10), whole);
  }
  EXPECT_EQ(load_alone(folder()), 10);
}

TEST_F(Resume, TruncatedShardIsPassedOver) {
  save(5);
  save(10);
  fs::resize_file(shard(10), 1000);
  EXPECT_EQ(load_alone(folder(), &lines_), 5);
  EXPECT_THAT(lines_, Contains(HasSubstr("1000 bytes instead of")));
}

TEST_F(Resume, DamagedManifestIsPassedOver) {
  save(5);
  save(10);
  const std::string manifest = read_file(of_step(10) / kManifestName);
  for (std::size_t place = 3; place < manifest.size(); place += 97) {
    flip_byte(of_step(10) / kManifestName, place);
    EXPECT_EQ(load_alone(folder()), 5) << "byte " << place;
    write_file(of_step(10) / kManifestName, manifest);
  }
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1"), std::string("{\"format\":1}")}) {
    write_file(of_step(10) / kManifestName, text);
    EXPECT_EQ(load_alone(folder()), 5) << text;
  }
}

// B113: with nothing left the run stops, instead of starting over silently.
TEST_F(Resume, B113_StopsWhenEveryCheckpointIsDamaged) {
  save(5);
  flip_byte(shard(5), 5000);
  try {
    load_alone(folder());
    FAIL() << "a damaged checkpoint was loaded";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(shard(5).string()), HasSubstr("checksum"),
                                    HasSubstr("trainer.default_root_dir")));
  }
}

TEST_F(Resume, AnotherModelIsRefusedWithItsDifferences) {
  save(5);
  const auto comm = alone();
  const parallel::FlatLayout other = parallel::make_layout({{"first.weight", {50, 61}},
                                                            {"first.bias", {50}},
                                                            {"third.weight", {100, 110}},
                                                            {"scale", {}}});
  LoadedState state(other, other.owned_by(GlobalRank{0}, 1));
  try {
    load_newest(folder(), state.target(), *comm, [](const std::string&) {});
    FAIL() << "another model's checkpoint was loaded";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("first.weight is [50, 60] there and [50, 61] in the model"),
                      HasSubstr("second.weight is only in the checkpoint"),
                      HasSubstr("third.weight is only in the model")));
  }
}

// A later life replays a step that a damaged checkpoint already has.
TEST_F(Resume, TheSameStepReplacesWhatWasThere) {
  save(5);
  save(10);
  flip_byte(shard(10), 5000);
  EXPECT_EQ(load_alone(folder()), 5);
  save(10, 3, {1, 2});
  EXPECT_EQ(load_alone(folder(), &lines_), 10);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
}

// B092 (Lightning#688): kill -9 at a random moment of a save loop leaves the new or the previous
// one.
TEST_F(Resume, B092_KilledWhileSavingFindsACompleteCheckpoint) {
  std::mt19937 random(92);
  std::int64_t step = 0;
  for (int life = 0; life < 50; ++life) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto comm = alone();
      for (std::int64_t next = step + 1;; ++next) {
        const SaveOutcome outcome =
            save_step(*comm, folder(), next, 2, {1, static_cast<std::uint64_t>(life + 1)});
        if (!outcome.is_saved() || ::write(ready[1], "x", 1) != 1) ::_exit(1);
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);  // the first save is done: kill in one of the next
    ::poll(nullptr, 0, static_cast<int>(random() % 20));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ::close(ready[0]);
    ::close(ready[1]);
    const std::int64_t found = load_alone(folder());
    ASSERT_GT(found, step) << "life " << life;
    step = found;
  }
}

}  // namespace
}  // namespace lrun::checkpoint
