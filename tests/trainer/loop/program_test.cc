// The program lrun-train itself: exit codes, sentences, signals, kills.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "tests/trainer/data/idx_writer.h"

namespace lrun::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kDeadline{60};

// One lrun-train with its output in a file; killed by the destructor if it still runs.
class Program {
 public:
  Program(const fs::path& output, std::vector<std::string> arguments) : output_(output) {
    arguments.insert(arguments.begin(), LRUN_TRAIN_PROGRAM);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ~Program() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  std::string output() const { return data::read_file(output_); }
  // The exit code, 128 + n when killed by signal n, −1 when it does not end.
  int wait() {
    int status = 0;
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return -1;
      ::poll(nullptr, 0, 5);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  fs::path output_;
  pid_t pid_ = -1;
};

class LrunTrain : public ::testing::Test {
 protected:
  void SetUp() override {
    data::write_images(folder(), "train", 600, 28);
    data::write_images(folder(), "t10k", 100, 28);
  }
  const fs::path& folder() const { return folder_.path(); }

  std::vector<std::string> fit(const std::string& run, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"fit",
                                          "data.path=" + folder().string(),
                                          "trainer.default_root_dir=" + (folder() / run).string(),
                                          "data.validation_samples=100",
                                          "data.leaf_size=4",
                                          "model.name=mlp",
                                          "model.hidden=16",
                                          "trainer.max_epochs=6",
                                          "trainer.log_every_n_steps=1",
                                          "checkpoint.every_n_train_steps=5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Exit code and output of a run to its end.
  std::pair<int, std::string> run(const std::vector<std::string>& arguments) {
    Program program(folder() / "output", arguments);
    const int code = program.wait();
    return {code, program.output()};
  }
  static std::string weights_in(const std::string& output) {
    const std::string key = "weights sha256: ";
    const std::size_t place = output.find(key);
    return place == std::string::npos ? "none" : output.substr(place + key.size(), 64);
  }
  void expect_usage(const std::vector<std::string>& arguments,
                    const ::testing::Matcher<std::string>& what) {
    const auto [code, output] = run(arguments);
    EXPECT_EQ(code, 2) << output;
    EXPECT_THAT(output, what);
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
  // Waits until the run has saved its checkpoint of `step` or a later one.
  void await_checkpoint(const std::string& name, int step) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    for (;;) {
      std::error_code ignored;
      for (const auto& entry : fs::directory_iterator(folder() / name / "checkpoints", ignored)) {
        const std::string found = entry.path().filename().string();
        if (found.find("partial") == std::string::npos &&
            found >= "step_" + std::string(6, '0') + std::to_string(step))
          return;
      }
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no checkpoint came";
      ::poll(nullptr, 0, 2);
    }
  }

  data::TemporaryFolder folder_;
};

TEST_F(LrunTrain, PrintsAccuracyHashAndPlaces) {
  const auto [code, output] = run(fit("a"));
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, AllOf(HasSubstr("test accuracy: "), HasSubstr("weights sha256: "),
                            HasSubstr("metrics.csv"), Not(HasSubstr("\033"))));
  EXPECT_TRUE(fs::exists(folder() / "a" / "config.yaml"));
  const auto [test_code, tested] =
      run({"test", "--config", (folder() / "a" / "config.yaml").string()});
  EXPECT_EQ(test_code, 0) << tested;
  EXPECT_EQ(weights_in(tested), weights_in(output));
}

// B124's neighbour: the signal saves, exits 128 + n, and the same command goes on.
TEST_F(LrunTrain, TermSavesAndTheNextRunEndsAlike) {
  const std::string undisturbed = weights_in(run(fit("a")).second);
  {
    Program program(folder() / "output", fit("b"));
    await_checkpoint("b", 10);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 143) << program.output();
    EXPECT_THAT(program.output(), HasSubstr("stopped by signal 15"));
  }
  const auto [code, output] = run(fit("b"));
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("resumed at step"));
  EXPECT_EQ(weights_in(output), undisturbed);
  EXPECT_EQ(data::read_file(folder() / "b" / "metrics.csv"),
            data::read_file(folder() / "a" / "metrics.csv"));
}

// B119: killed at random moments, five times.
TEST_F(LrunTrain, B119_FiveKillsChangeNothing) {
  const std::string undisturbed = weights_in(run(fit("a")).second);
  std::mt19937 random(119);
  for (int life = 0; life < 5; ++life) {
    Program program(folder() / "output", fit("b"));
    await_checkpoint("b", 10 + 8 * life < 60 ? 10 + 8 * life : 60);
    ::poll(nullptr, 0, static_cast<int>(random() % 10));
    program.signal(SIGKILL);
    program.wait();
  }
  const auto [code, output] = run(fit("b"));
  EXPECT_EQ(code, 0) << output;
  EXPECT_EQ(weights_in(output), undisturbed);
  EXPECT_EQ(data::read_file(folder() / "b" / "metrics.csv"),
            data::read_file(folder() / "a" / "metrics.csv"));
}

TEST_F(LrunTrain, WrongUsageIsOneLineAndExitTwo) {
  expect_usage({}, HasSubstr("no command is given"));
  expect_usage({"fly"}, AllOf(HasSubstr("'fly'"), HasSubstr("fit, validate, test")));
  expect_usage({"fit", "--speed"}, HasSubstr("unknown option --speed"));
  expect_usage({"fit", "--config"}, HasSubstr("needs a file"));
  expect_usage({"fit", "--config", "/nowhere.yaml"},
               HasSubstr("cannot read configuration /nowhere.yaml"));
  expect_usage(fit("a", {"trainer.max_epoch=2"}), HasSubstr("did you mean 'trainer.max_epochs'"));
  EXPECT_FALSE(fs::exists(folder() / "a"));
}

TEST_F(LrunTrain, BrokenDataAndFoldersAreOneLineAndExitTwo) {
  expect_usage(fit("a", {"data.path=/nowhere"}), HasSubstr("/nowhere is missing"));
  expect_usage(fit("train-labels-idx1-ubyte"), HasSubstr("checkpoint folder is not usable"));
  fs::resize_file(folder() / "train-images-idx3-ubyte", 3000);
  expect_usage(fit("a"), AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("truncated")));
}

TEST_F(LrunTrain, AnotherModelsCheckpointIsOneLineAndExitTwo) {
  ASSERT_EQ(run(fit("a", {"trainer.max_steps=5"})).first, 0);
  const auto [code, output] = run(fit("a", {"model.hidden=17"}));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, AllOf(HasSubstr("belongs to another model"),
                            HasSubstr("[16, 784] there and [17, 784]")));
}

TEST_F(LrunTrain, DamagedCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::string undisturbed = weights_in(run(fit("a")).second);
  const fs::path shard =
      folder() / "a" / "checkpoints" / "step_00000066" / "shard-00000-of-00001.safetensors";
  std::string bytes = data::read_file(shard);
  ASSERT_GT(bytes.size(), 5000U);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  data::write_file(shard, bytes);
  const auto [code, output] = run(fit("a"));
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, AllOf(HasSubstr(shard.string()), HasSubstr("resumed at step 65")));
  EXPECT_EQ(weights_in(output), undisturbed);
}

}  // namespace
}  // namespace lrun::train
