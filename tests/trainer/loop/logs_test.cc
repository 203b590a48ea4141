// Logs: CSV rows, event files, progress lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/trainer/data/idx_writer.h"
#include "tests/trainer/loop/event_file.h"
#include "trainer/loop/batch_limit.h"
#include "trainer/loop/csv_logger.h"
#include "trainer/loop/event_record.h"
#include "trainer/loop/progress_line.h"
#include "trainer/loop/tensorboard_logger.h"
#include "trainer/loop/throughput.h"

namespace lrun::loop {
namespace {

using data::read_file;

LogRow row_of(std::int64_t step, double loss) {
  return {.epoch = 0,
          .step = step,
          .values = {{"train_loss", loss}},
          .timings = {{"samples_per_second", 7}}};
}

TEST(EventRecord, ChecksumIsThatOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
}

class Logs : public ::testing::Test {
 protected:
  std::filesystem::path csv() const { return folder_.path() / "metrics.csv"; }
  std::filesystem::path events() const { return folder_.path() / "events.out.tfevents.lrun"; }
  data::TemporaryFolder folder_;
};

TEST_F(Logs, CsvMergesAStepAndLeavesTimingsOut) {
  CsvLogger logger(csv(), {"train_loss", "val_loss"});
  logger.start();
  logger.log(row_of(2, 0.5));
  logger.log(row_of(4, 0.1));
  logger.log({.epoch = 0, .step = 4, .values = {{"val_loss", 0.25}}, .timings = {}});
  logger.position();
  EXPECT_EQ(read_file(csv()), "epoch,step,train_loss,val_loss\n0,2,0.5,\n0,4,0.1,0.25\n");
}

TEST_F(Logs, ResumeCutsWhatCameAfterTheCheckpoint) {
  std::string csv_position;
  std::string event_position;
  {
    CsvLogger rows(csv(), {"train_loss"});
    TensorBoardLogger board(folder_.path());
    for (Logger* logger : std::initializer_list<Logger*>{&rows, &board}) {
      logger->start();
      logger->log(row_of(1, 1));
    }
    csv_position = rows.position();
    event_position = board.position();
    rows.log(row_of(2, 9));
    board.log(row_of(2, 9));
  }
  CsvLogger rows(csv(), {"train_loss"});
  TensorBoardLogger board(folder_.path());
  EXPECT_EQ(rows.resume(csv_position), "");
  EXPECT_EQ(board.resume(event_position), "");
  rows.log(row_of(2, 2));
  board.log(row_of(2, 2));
  rows.position();
  EXPECT_EQ(read_file(csv()), "epoch,step,train_loss\n0,1,1\n0,2,2\n");
  const std::vector<LoggedEvent> read = read_event_file(events());
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].file_version, "brain.Event:2");
  EXPECT_EQ(read[2].value("train_loss"), 2.0F);
  EXPECT_EQ(read[2].value("samples_per_second"), 7.0F);
}

TEST_F(Logs, AVanishedLogIsBegunAnewWithASentence) {
  CsvLogger rows(csv(), {"train_loss"});
  EXPECT_THAT(rows.resume("500"), ::testing::HasSubstr("metrics.csv is shorter"));
  rows.log(row_of(6, 1));
  rows.position();
  EXPECT_EQ(read_file(csv()), "epoch,step,train_loss\n0,6,1\n");
  TensorBoardLogger board(folder_.path());
  EXPECT_THAT(board.resume("500"), ::testing::HasSubstr("begins anew"));
  EXPECT_EQ(read_event_file(events()).size(), 1U);
}

TEST_F(Logs, TensorBoardReadsTheEvents) {
  const char* python = std::getenv("LRUN_PEER_PYTHON");
  if (python == nullptr || *python == '\0') GTEST_SKIP() << "LRUN_PEER_PYTHON is not set";
  const std::string interpreter = python;
  if (std::system((interpreter + " -c 'import tensorboard' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "the Python of LRUN_PEER_PYTHON has no tensorboard";
  }
  {
    TensorBoardLogger board(folder_.path());
    board.start();
    for (std::int64_t step = 1; step <= 300; ++step) {
      board.log(row_of(step, 0.25 * static_cast<double>(step)));
    }
    board.position();
  }
  const auto script = folder_.path() / "peer.py";
  data::write_file(
      script,
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})\n"
      "events.Reload()\n"
      "read = [(e.step, e.value) for e in events.Scalars('train_loss')]\n"
      "assert read == [(s, 0.25 * s) for s in range(1, 301)], read[:5]\n"
      "assert 'samples_per_second' in events.Tags()['scalars'], events.Tags()\n");
  const std::string command = interpreter + " " + script.string() + " " + folder_.path().string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(ProgressLine, FitsTheTerminal) {
  const ProgressState state{.epoch = 0,
                            .epochs = 2,
                            .step = 120,
                            .steps = 626,
                            .loss = 0.5123,
                            .samples_per_second = 9800,
                            .seconds_left = 24.2};
  EXPECT_EQ(plain_line(state), "epoch 1/2, step 120/626, loss 0.5123, 9,800 samples/s, 0:25 left");
  EXPECT_EQ(bar_line(state, 120, false),
            "[####....................] epoch 1/2, step 120/626, loss 0.5123, 9,800 samples/s, "
            "0:25 left");
  EXPECT_EQ(bar_line(state, 40, false), "epoch 1/2, step 120/626, loss 0.5123, 9,");
  EXPECT_THAT(bar_line(state, 120, true), ::testing::HasSubstr("\033[36m####\033[0m...."));
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(with_separators(1234567), "1,234,567");
}

TEST(Throughput, IsThatOfTheWindow) {
  Throughput throughput;
  const Instant start{};
  EXPECT_EQ(throughput.samples_per_second(), 0);
  for (int second = 0; second <= 20; ++second) {
    throughput.add(start + std::chrono::seconds(second),
                   second <= 10 ? 100 * second : 1000 + 300 * (second - 10));
  }
  EXPECT_DOUBLE_EQ(throughput.samples_per_second(), 300);
}

TEST(BatchLimit, CountsAndFractions) {
  BatchLimit limit;
  EXPECT_EQ(limited(limit, 10), 10);
  ASSERT_TRUE(parse_batch_limit("1", &limit));
  EXPECT_EQ(limited(limit, 10), 1);
  ASSERT_TRUE(parse_batch_limit("0.25", &limit));
  EXPECT_EQ(limited(limit, 10), 2);
  EXPECT_EQ(limited(limit, 1), 1);
  ASSERT_TRUE(parse_batch_limit("0", &limit));
  EXPECT_EQ(limited(limit, 10), 0);
  for (const char* wrong : {"", "-1", "1.5", "x", "3x", "nan"}) {
    EXPECT_FALSE(parse_batch_limit(wrong, &limit)) << wrong;
  }
  EXPECT_EQ(to_string({.is_fraction = true, .value = 1}), "1.0");
}

}  // namespace
}  // namespace lrun::loop
