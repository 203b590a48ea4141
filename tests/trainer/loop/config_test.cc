// Configuration files: what is accepted, and one sentence for each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/idx_writer.h"
#include "trainer/loop/errors.h"
#include "trainer/train/command_line.h"
#include "trainer/train/yaml_config.h"

namespace lrun::train {
namespace {

using ::testing::HasSubstr;

class YamlConfig : public ::testing::Test {
 protected:
  Config read(const std::string& text, const std::vector<std::string>& overrides = {}) {
    data::write_file(file(), text);
    return read_config(file(), overrides);
  }
  // The sentence after "FILE:".
  std::string failure(const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      read(text, overrides);
    } catch (const loop::UsageError& error) {
      const std::string sentence = error.what();
      EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
      const std::string prefix = file().string() + ":";
      return sentence.starts_with(prefix) ? sentence.substr(prefix.size()) : sentence;
    }
    return "accepted";
  }
  std::filesystem::path file() const { return folder_.path() / "c.yaml"; }
  data::TemporaryFolder folder_;
};

TEST_F(YamlConfig, OverridesWinOverTheFileAndTheFileOverDefaults) {
  const Config config =
      read("seed: 7\ntrainer:\n  max_epochs: 3\n  leaves: 6\n", {"trainer.leaves=8"});
  EXPECT_EQ(config.seed, 7);
  EXPECT_EQ(config.trainer.max_epochs, 3);
  EXPECT_EQ(config.trainer.leaves, 8);
  EXPECT_EQ(config.model.name, "cnn");
}

TEST_F(YamlConfig, EmptyFilesAndEmptySectionsAreDefaults) {
  EXPECT_EQ(flatten(read("")), flatten(Config{}));
  EXPECT_EQ(flatten(read("trainer:\n")), flatten(Config{}));
}

TEST_F(YamlConfig, WhatIsPrintedReadsBack) {
  Config config;
  config.optimizer.lr = 0.1 + 0.2;
  config.trainer.limit_val_batches = {.is_fraction = false, .value = 3};
  config.data.path = "with: colon # and hash";
  config.trainer.enable_progress_bar = false;
  EXPECT_EQ(flatten(read(to_yaml(config))), flatten(config));
}

struct Mistake {
  std::string text;
  std::string sentence;
};

TEST_F(YamlConfig, MistakesNameLineKeyAndFix) {
  const std::vector<Mistake> mistakes = {
      {"sede: 1\n", "1: unknown key 'sede'; did you mean 'seed'?"},
      {"trainer:\n  max_epoch: 1\n",
       "2: unknown key 'trainer.max_epoch'; did you mean 'trainer.max_epochs'?"},
      {"max_epochs: 1\n", "1: unknown key 'max_epochs'; did you mean 'trainer.max_epochs'?"},
      {"trainer:\n  max_epochs: two\n",
       "2: trainer.max_epochs is 'two'; accepted: an integer from 1 to 1000000"},
      {"trainer:\n  max_epochs: 0\n", "2: trainer.max_epochs is '0'"},
      {"trainer:\n  leaves: 1.5\n",
       "2: trainer.leaves is '1.5'; accepted: an integer from 1 to 65536"},
      {"strategy: fsdp\n", "1: strategy is 'fsdp'; accepted: one of ddp, zero1"},
      {"logging:\n  csv: 3\n", "2: logging.csv is '3'; accepted: true or false"},
      {"optimizer:\n  lr: nan\n", "2: optimizer.lr is 'nan'; accepted: a number from 0 to 1000000"},
      {"optimizer:\n  lr: [1, 2]\n", "2: optimizer.lr must be one value"},
      {"trainer:\n  limit_val_batches: 1.5\n",
       "2: trainer.limit_val_batches is '1.5'; accepted: a number of batches"},
      {"trainer: 3\n", "1: 'trainer' must be a block of keys"},
      {"seed: 1\nseed: 2\n", "2: key 'seed' is given twice"},
      {"seed:\n", "1: seed is ''; accepted: an integer of at least 0"},
      {"- 1\n", "1: the configuration must be a block of keys"},
      {"seed: [1\n", "not valid YAML"},
      {"a: b: c\n", "1: not valid YAML"},
      {"completely_else: 1\n", "--print-config"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_THAT(failure(mistake.text), HasSubstr(mistake.sentence)) << mistake.text;
  }
}

TEST_F(YamlConfig, OverridesAreCheckedAlike) {
  EXPECT_THAT(failure("", {"trainer.leave=3"}), HasSubstr("did you mean 'trainer.leaves'"));
  EXPECT_THAT(failure("", {"seed=-1"}),
              HasSubstr("seed is '-1'; accepted: an integer of at least 0"));
  EXPECT_THAT(failure("", {"=3"}), HasSubstr("is not an override"));
}

TEST(CommandLine, ReadsCommandsOptionsAndOverrides) {
  const CommandLine line = parse_command_line({"fit", "--config=a.yaml", "seed=3", "x=y"});
  EXPECT_EQ(line.command, Command::Fit);
  EXPECT_EQ(line.config, "a.yaml");
  EXPECT_EQ(line.overrides, (std::vector<std::string>{"seed=3", "x=y"}));
  EXPECT_EQ(parse_command_line({"fit", "--print-config"}).command, Command::PrintConfig);
  EXPECT_EQ(parse_command_line({"--print-config", "fit"}).command, Command::PrintConfig);
  EXPECT_EQ(parse_command_line({"fit", "--help"}).command, Command::Help);
  EXPECT_THROW(parse_command_line({"fit", "test"}), loop::UsageError);
}

}  // namespace
}  // namespace lrun::train
