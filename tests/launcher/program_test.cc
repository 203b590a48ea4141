#include "launcher/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/launcher/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Program : public ::testing::Test {
 protected:
  std::string make_file(const std::string& name, bool is_executable) {
    const std::string path = folder_.file(name);
    std::ofstream(path) << "#!/bin/sh\n";
    const auto mode =
        is_executable ? std::filesystem::perms::owner_all
                      : std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
    std::filesystem::permissions(path, mode);
    return path;
  }
  std::vector<std::string> resolved(RunCommand command) {
    auto found = resolve_program(command, environment_);
    if (auto* error = std::get_if<UsageError>(&found)) return {"refused: " + error->sentence};
    return std::get<std::vector<std::string>>(found);
  }
  TemporaryFolder folder_;
  Environment environment_{{"PATH", folder_.path()}};
};

TEST_F(Program, FindsAPathAndAWordOnPath) {
  const std::string path = make_file("train", true);
  EXPECT_THAT(resolved({{}, {path, "a"}}), ElementsAre(path, "a"));
  EXPECT_THAT(resolved({{}, {"train"}}), ElementsAre(path));
}

TEST_F(Program, LooksBesideLrunBeforePath) {
  const std::string self = std::filesystem::path("/proc/self/exe").string();
  const std::string own_name = std::filesystem::read_symlink(self).filename().string();
  make_file(own_name, true);
  EXPECT_EQ(resolved({{}, {own_name}}).front(), own_folder() + "/" + own_name);
}

TEST_F(Program, RunsScriptsThroughPython) {
  const std::string python = make_file("python3", true);
  const std::string script = make_file("t.py", true);
  EXPECT_THAT(resolved({{}, {script, "a"}}), ElementsAre(python, "-u", script, "a"));
  RunCommand module;
  module.options.is_module = true;
  module.program = {"json.tool"};
  EXPECT_THAT(resolved(module), ElementsAre(python, "-u", "-m", "json.tool"));
  environment_["PYTHON_EXEC"] = "/bin/echo";
  EXPECT_EQ(resolved({{}, {script}}).front(), "/bin/echo");
  RunCommand direct;
  direct.options.no_python = true;
  direct.program = {script};
  EXPECT_THAT(resolved(direct), ElementsAre(script));
}

TEST_F(Program, SaysWhyNot) {
  EXPECT_THAT(resolved({{}, {"nowhere"}}).front(), HasSubstr("neither beside lrun"));
  EXPECT_THAT(resolved({{}, {"./nowhere"}}).front(), HasSubstr("does not exist"));
  EXPECT_THAT(resolved({{}, {make_file("plain", false)}}).front(), HasSubstr("chmod +x"));
  EXPECT_THAT(resolved({{}, {folder_.path()}}).front(), HasSubstr("is a folder"));
  EXPECT_THAT(resolved({{}, {"missing.py"}}).front(), HasSubstr("does not exist"));
  EXPECT_THAT(resolved({{}, {make_file("x.py", false)}}).front(), HasSubstr("needs Python"));
}

}  // namespace
}  // namespace lrun::launcher
