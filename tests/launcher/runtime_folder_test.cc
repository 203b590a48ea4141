#include "launcher/runtime_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "launcher/discovery.h"
#include "tests/launcher/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::HasSubstr;

class RuntimeFolder : public ::testing::Test {
 protected:
  RuntimeFolder() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  ~RuntimeFolder() override { ::unsetenv("XDG_RUNTIME_DIR"); }
  TemporaryFolder folder_;
};

TEST_F(RuntimeFolder, IsPrivate) {
  const std::string path = runtime_folder();
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  EXPECT_EQ(runtime_folder(), path) << "the second call finds it";
}

TEST_F(RuntimeFolder, RefusesOneThatIsOpenToOthers) {
  ::chmod(runtime_folder().c_str(), 0777);
  EXPECT_THAT([] { runtime_folder(); },
              ::testing::ThrowsMessage<std::runtime_error>(HasSubstr("not private")));
}

TEST_F(RuntimeFolder, RefusesALink) {
  std::filesystem::create_symlink("/tmp", folder_.file("lrun"));
  EXPECT_THROW(runtime_folder(), std::runtime_error);
}

TEST_F(RuntimeFolder, FileNamesAreSafeAndDistinct) {
  EXPECT_EQ(safe_file_name("job-7.r1"), "job-7.r1");
  EXPECT_EQ(safe_file_name("a/b").find('/'), std::string::npos);
  EXPECT_NE(safe_file_name("a/b"), safe_file_name("a:b"));
  EXPECT_NE(safe_file_name(".."), "..");
  EXPECT_LE(safe_file_name(std::string(500, 'x')).size(), 64U);
  EXPECT_FALSE(safe_file_name("").empty());
}

TEST_F(RuntimeFolder, NodeNamesAreHeldUntilReleased) {
  const std::string folder = runtime_folder();
  NodeName first = claim_node_name(folder, "host", "job");
  EXPECT_EQ(first.name, "host");
  NodeName second = claim_node_name(folder, "host", "job");
  EXPECT_EQ(second.name, "host#1");
  EXPECT_EQ(claim_node_name(folder, "host", "another").name, "host") << "names belong to a job";
  first.lock.reset();
  EXPECT_EQ(claim_node_name(folder, "host", "job").name, "host")
      << "a restarted agent gets its name back";
}

TEST_F(RuntimeFolder, LocksExclude) {
  const std::string path = folder_.file("x.lock");
  auto lock = lock_file(path, 0);
  ASSERT_TRUE(lock.has_value());
  EXPECT_FALSE(lock_file(path, 20).has_value());
  lock.reset();
  EXPECT_TRUE(lock_file(path, 0).has_value());
}

TEST_F(RuntimeFolder, RunIdsTellCommandsApart) {
  const auto id = [](std::vector<std::string> command, const std::string& folder) {
    return run_id_of_command(command, folder, 2, 2);
  };
  EXPECT_EQ(id({"/bin/train", "a"}, "/x"), id({"/bin/train", "a"}, "/x"));
  EXPECT_NE(id({"/bin/train", "a"}, "/x"), id({"/bin/train", "b"}, "/x"));
  EXPECT_NE(id({"/bin/train", "a"}, "/x"), id({"/bin/train", "a"}, "/y"));
  EXPECT_NE(id({"/bin/train", "a b"}, "/x"), id({"/bin/train", "a", "b"}, "/x"));
  EXPECT_THAT(id({"/bin/train"}, "/x"), ::testing::StartsWith("train-"));
}

TEST_F(RuntimeFolder, AStaleSocketIsReplaced) {
  const std::string folder = runtime_folder();
  SocketChoice first = choose_socket(folder, "job", true);
  EXPECT_FALSE(first.is_served);
  std::filesystem::create_directories(folder + "/jobs");
  std::ofstream(first.path) << "";  // what a killed service leaves behind
  first.lock.reset();
  const SocketChoice second = choose_socket(folder, "job", true);
  EXPECT_EQ(second.path, first.path);
  EXPECT_FALSE(second.is_served);
  EXPECT_TRUE(live_sockets(folder).empty());
}

}  // namespace
}  // namespace lrun::launcher
