// Checkpoints of N workers, loaded by M; agreement between ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/trainer/checkpoint/saves.h"
#include "tests/trainer/comm/world.h"
#include "tests/trainer/data/idx_writer.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/durable_file.h"

namespace lrun::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::int64_t load_in(comm::Comm& comm, const std::filesystem::path& folder,
                     std::vector<std::string>* lines = nullptr) {
  const parallel::FlatLayout layout = small_layout();
  LoadedState state(layout, layout.owned_by(comm.rank(), comm.world_size()));
  const auto loaded = load_newest(folder, state.target(), comm, [&](const std::string& line) {
    if (lines != nullptr) lines->push_back(line);
  });
  if (!loaded) return -1;
  EXPECT_TRUE(state.is_of_step(loaded->manifest.step)) << "rank " << comm.rank().value;
  EXPECT_EQ(loaded->buffers.at("seen").bytes.size(), 24U);
  return loaded->manifest.step;
}

// B107 (DeepSpeed#2898): saved by four, loaded by any number.
TEST(WorldSize, B107_AnyNumberOfWorkersLoadsWhatAnyNumberSaved) {
  for (const int saved_by : {4, 1, 3}) {
    const data::TemporaryFolder folder;
    comm::World{.size = saved_by}.run(
        [&](comm::Comm& comm) { EXPECT_TRUE(save_step(comm, folder.path(), 7).is_saved()); });
    for (const int loaded_by : {1, 2, 3, 6}) {
      comm::World{.size = loaded_by}.run([&](comm::Comm& comm) {
        EXPECT_EQ(load_in(comm, folder.path()), 7) << saved_by << " to " << loaded_by;
      });
    }
  }
}

// B098, B100: eight ranks, a folder that does not exist yet, nobody returns before the commit.
TEST(WorldSize, B098_RanksSaveTogetherIntoANewFolder) {
  const data::TemporaryFolder folder;
  const std::filesystem::path target = folder.path() / "a" / "b";
  comm::World{.size = 8}.run([&](comm::Comm& comm) {
    for (std::int64_t step = 1; step <= 20; ++step) {
      const SaveOutcome outcome = save_step(comm, target, step, 2);
      EXPECT_TRUE(outcome.is_saved()) << outcome.error;
      EXPECT_TRUE(std::filesystem::exists(outcome.folder / kManifestName));
      comm.barrier();  // rank 0 may remove old ones from here on
    }
  });
  EXPECT_EQ(read_catalog(target).complete.size(), 2U);
  EXPECT_TRUE(read_catalog(target).ignored.empty());
}

// B094: one rank cannot write; all hear of it, nothing is marked complete, the older one stays.
TEST(WorldSize, B094_AFailedShardFailsTheSaveForAll) {
  const data::TemporaryFolder folder;
  comm::World{.size = 3}.run([&](comm::Comm& comm) {
    EXPECT_TRUE(save_step(comm, folder.path(), 1).is_saved());
    comm.barrier();
    // Rank 1's shard has the name of a folder: its open fails.
    if (comm.rank().value == 1) {
      std::filesystem::create_directories(folder.path() / partial_name(2, {1, 1}) /
                                          "shard-00001-of-00003.safetensors");
    }
    comm.barrier();
    const SaveOutcome outcome = save_step(comm, folder.path(), 2);
    EXPECT_THAT(outcome.error, HasSubstr("shard-00001-of-00003.safetensors"));
    EXPECT_EQ(load_in(comm, folder.path()), 1);
    // And the next save is not disturbed by what is left.
    comm.barrier();
    EXPECT_TRUE(save_step(comm, folder.path(), 2).is_saved());
  });
}

// B097: ranks that would write to different places fail loudly.
TEST(WorldSize, B097_DifferentFoldersAreRefused) {
  const data::TemporaryFolder folder;
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    const auto own = folder.path() / std::to_string(comm.rank().value);
    EXPECT_THAT(save_step(comm, own, 1).error, HasSubstr("different folders"));
  });
  EXPECT_TRUE(read_catalog(folder.path() / "0").complete.empty());
}

// B110: one rank sees another folder; nobody starts alone.
TEST(WorldSize, B110_RanksAgreeOrNameWhoLacksWhat) {
  const data::TemporaryFolder folder;
  const auto first = folder.path() / "first";
  const auto second = folder.path() / "second";
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    for (const std::int64_t step : {3, 6}) EXPECT_TRUE(save_step(comm, first, step).is_saved());
  });
  const auto view = [&](const comm::Comm& comm) { return comm.rank().value == 1 ? second : first; };
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    try {
      load_in(comm, view(comm));
      ADD_FAILURE() << "rank " << comm.rank().value << " went on";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("global rank 1"), HasSubstr("missing")));
    }
  });
  std::filesystem::copy(first, second, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(second / folder_name(6));
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    std::vector<std::string> lines;
    EXPECT_EQ(load_in(comm, view(comm), &lines), 3);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_THAT(lines[0], AllOf(HasSubstr("step_00000006"), HasSubstr("global rank 1")));
  });
}

// A shard that only one rank reads is damaged: all fall back together.
TEST(WorldSize, DamageSeenByOneRankMovesAll) {
  const data::TemporaryFolder folder;
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    for (const std::int64_t step : {3, 6})
      EXPECT_TRUE(save_step(comm, folder.path(), step).is_saved());
  });
  const auto shard = folder.path() / folder_name(6) / "shard-00001-of-00002.safetensors";
  std::string bytes = data::read_file(shard);
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  data::write_file(shard, bytes);
  comm::World{.size = 2}.run([&](comm::Comm& comm) {
    std::vector<std::string> lines;
    EXPECT_EQ(load_in(comm, folder.path(), &lines), 3);
    EXPECT_THAT(lines.at(0), AllOf(HasSubstr("global rank 1"), HasSubstr(shard.string())));
  });
}

}  // namespace
}  // namespace lrun::checkpoint
