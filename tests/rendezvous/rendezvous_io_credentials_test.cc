// The TLS folder: made once, whole, secret; renewed; refused with the file's name.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "rendezvous/certificates.h"
#include "tests/rendezvous/io_fixture.h"

namespace lrun::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777u;
}

class RendezvousIoCredentials : public testing::Test {
 protected:
  std::string refusal() const {
    try {
      load_credentials(tls_);
    } catch (const CredentialsError& error) {
      return error.what();
    }
    return "nothing was refused";
  }
  TemporaryFolder folder_;
  const std::string tls_ = folder_ / "config/lrun/tls";
};

TEST_F(RendezvousIoCredentials, IsMadeOnFirstUseAndSecret) {
  const Credentials made = load_or_make_credentials(tls_);
  EXPECT_EQ(mode_of(tls_), 0700u);
  for (const char* name : {"/ca.crt", "/ca.key", "/tls.crt", "/tls.key"}) {
    EXPECT_EQ(mode_of(tls_ + name), 0600u) << name;
  }
  EXPECT_GT(made.not_after, std::chrono::system_clock::now() + std::chrono::hours(24 * 300));
  EXPECT_EQ(load_or_make_credentials(tls_).certificate_pem, made.certificate_pem);
}

TEST_F(RendezvousIoCredentials, EightProcessesThatRaceEndWithOneFolder) {
  std::array<int, 2> start{};
  ASSERT_EQ(::pipe(start.data()), 0);
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::close(start[1]);
      char byte = 0;
      [[maybe_unused]] const ssize_t started =
          ::read(start[0], &byte, 1);  // all at once: at its end
      try {
        const Credentials mine = load_or_make_credentials(tls_);
        overwrite(folder_ / ("child" + std::to_string(child)), mine.certificate_pem + mine.key_pem);
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    children.push_back(pid);
  }
  ::close(start[0]);
  ::close(start[1]);
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const Credentials winner = load_credentials(tls_);
  for (int child = 0; child < 8; ++child) {
    EXPECT_EQ(read(folder_ / ("child" + std::to_string(child))),
              winner.certificate_pem + winner.key_pem);
  }
  int entries = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(folder_ / "config/lrun")) {
    ++entries;
  }
  EXPECT_EQ(entries, 1) << "the losers' folders are gone";
}

TEST_F(RendezvousIoCredentials, AnOldCertificateIsRenewedForTheSameKey) {
  make_credentials(tls_);
  const Credentials before = load_credentials(tls_);
  const Certificate authority{.certificate_pem = before.ca_pem, .key_pem = read(tls_ + "/ca.key")};
  overwrite(tls_ + "/tls.crt",
            renewed_leaf(authority, before.key_pem, std::chrono::hours(24 * 30)));
  const Credentials renewed = load_or_make_credentials(tls_);
  EXPECT_GT(renewed.not_after, std::chrono::system_clock::now() + std::chrono::hours(24 * 300));
  EXPECT_EQ(renewed.key_pem, before.key_pem);
  EXPECT_EQ(renewed.ca_pem, before.ca_pem) << "peers that run already still trust it";
  EXPECT_EQ(mode_of(tls_ + "/tls.crt"), 0600u);
}

TEST_F(RendezvousIoCredentials, ACopyWithoutTheCasKeyIsUsedAsItIs) {
  make_credentials(tls_);
  std::filesystem::remove(tls_ + "/ca.key");
  EXPECT_EQ(load_or_make_credentials(tls_).folder, tls_);
}

TEST_F(RendezvousIoCredentials, AKeyThatEverybodyMayReadIsRefused) {
  make_credentials(tls_);
  ::chmod((tls_ + "/tls.key").c_str(), 0640);
  EXPECT_NO_THROW(load_credentials(tls_)) << "Kubernetes mounts secrets group-readable";
  ::chmod((tls_ + "/tls.key").c_str(), 0644);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(tls_ + "/tls.key"), HasSubstr("chmod")));
}

TEST_F(RendezvousIoCredentials, EveryMistakeNamesItsFile) {
  EXPECT_THAT(refusal(), HasSubstr(tls_ + "/tls.key"));  // nothing is there
  make_credentials(tls_);
  const std::string good_key = read(tls_ + "/tls.key");
  const std::string good_ca = read(tls_ + "/ca.crt");

  overwrite(tls_ + "/tls.key", "no key");
  EXPECT_THAT(refusal(), HasSubstr(tls_ + "/tls.key holds no private key"));
  make_credentials(folder_ / "other");
  overwrite(tls_ + "/tls.key", read(folder_ / "other/tls.key"));
  EXPECT_THAT(refusal(), HasSubstr("tls.key is not the key of tls.crt"));
  overwrite(tls_ + "/tls.key", good_key);
  overwrite(tls_ + "/ca.crt", read(folder_ / "other/ca.crt"));
  EXPECT_THAT(refusal(), HasSubstr("tls.crt is not valid for ca.crt"));
  overwrite(tls_ + "/ca.crt", "garbage");
  EXPECT_THAT(refusal(), HasSubstr(tls_ + "/ca.crt holds no certificate"));
  overwrite(tls_ + "/ca.crt", read(folder_ / "other/ca.crt") + good_ca);
  EXPECT_NO_THROW(load_credentials(tls_)) << "a bundle of two CAs, as in a rotation";

  const Certificate authority{.certificate_pem = good_ca, .key_pem = read(tls_ + "/ca.key")};
  overwrite(tls_ + "/ca.crt", good_ca);
  overwrite(tls_ + "/tls.crt", renewed_leaf(authority, good_key, std::chrono::seconds(-60)));
  EXPECT_THAT(refusal(), HasSubstr("expired"));
}

// Y4: what is secret is in no message.
TEST_F(RendezvousIoCredentials, NoMessageHoldsTheKey) {
  make_credentials(tls_);
  overwrite(tls_ + "/tls.key", "MARKER-OF-A-SECRET");
  EXPECT_EQ(refusal().find("MARKER"), std::string::npos);
}

TEST_F(RendezvousIoCredentials, TheUsersFolderFollowsTheEnvironment) {
  const char* const before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("XDG_CONFIG_HOME", "/somewhere", 1);
  EXPECT_EQ(user_tls_folder(), "/somewhere/lrun/tls");
  ::setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_THAT(user_tls_folder(), HasSubstr("/.config/lrun/tls"));
  before == nullptr ? ::unsetenv("XDG_CONFIG_HOME") : ::setenv("XDG_CONFIG_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace lrun::rendezvous
