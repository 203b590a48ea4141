#include "tests/trainer/comm/process_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace lrun::comm {
namespace {

constexpr int kPatienceMilliseconds = 60'000;

// Values as files of one folder, complete when their name appears.
class FileBootstrap final : public Bootstrap {
 public:
  explicit FileBootstrap(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void publish(const std::string& key, const std::string& value) override {
    const auto partial = folder_ / ("partial." + std::to_string(::getpid()));
    std::ofstream(partial) << value;
    std::filesystem::rename(partial, path_of(key));
  }

  std::string lookup(const std::string& key, std::chrono::milliseconds deadline) override {
    const auto until = std::chrono::steady_clock::now() + deadline;
    while (!std::filesystem::exists(path_of(key))) {
      if (std::chrono::steady_clock::now() >= until) throw DeadlineExceeded("no " + key);
      ::poll(nullptr, 0, 2);
    }
    std::ostringstream text;
    text << std::ifstream(path_of(key)).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_of(std::string key) const {
    for (char& c : key) c = c == '/' ? '_' : c;
    return folder_ / key;
  }
  std::filesystem::path folder_;
};

std::filesystem::path make_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "lrun-comm-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return name;
}

bool is_readable(const Fd& descriptor) {
  pollfd waiting{descriptor.get(), POLLIN, 0};
  return ::poll(&waiting, 1, kPatienceMilliseconds) == 1;
}

}  // namespace

std::string outcome_of(const std::function<void()>& operation) {
  try {
    operation();
    return "";
  } catch (const PeerLost& error) {
    return "PeerLost " + std::to_string(error.peer.value) + ": " + error.what();
  } catch (const Aborted& error) {
    return std::string("Aborted: ") + error.what();
  } catch (const DeadlineExceeded& error) {
    return std::string("DeadlineExceeded: ") + error.what();
  } catch (const Mismatch& error) {
    return std::string("Mismatch: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("other: ") + error.what();
  }
}

ProcessWorld::ProcessWorld(const World& world, const std::function<std::string(Comm&)>& program)
    : folder_(make_folder()) {
  for (int rank = 0; rank < world.size; ++rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    Fd reading(ends[0]);
    Fd writing(ends[1]);
    const pid_t pid = ::fork();
    if (pid == 0) be_rank(world, GlobalRank{rank}, std::move(writing), program);
    children_.push_back({pid, std::move(reading)});
  }
}

// Never returns to the test: a forked GoogleTest would report a second time.
void ProcessWorld::be_rank(const World& world, GlobalRank rank, Fd output,
                           const std::function<std::string(Comm&)>& program) {
  children_.clear();
  std::string outcome;
  const auto write = [&output](const std::string& text) {
    [[maybe_unused]] const auto written = ::write(output.get(), text.data(), text.size());
  };
  try {
    FileBootstrap bootstrap(folder_);
    const auto comm = Comm::connect(world.options_of(rank), &bootstrap);
    write("+");
    outcome = program(*comm);
  } catch (const std::exception& error) {
    outcome = std::string("other: ") + error.what();
  }
  write(outcome);
  ::_exit(0);
}

ProcessWorld::~ProcessWorld() {
  for (const Child& child : children_) ::kill(child.pid, SIGKILL);
  for (const Child& child : children_) ::waitpid(child.pid, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool ProcessWorld::wait_until_running() {
  for (const Child& child : children_) {
    char sign = 0;
    if (!is_readable(child.output) || ::read(child.output.get(), &sign, 1) != 1) return false;
  }
  return true;
}

void ProcessWorld::send_signal(GlobalRank rank, int signal) {
  ::kill(children_.at(static_cast<std::size_t>(rank.value)).pid, signal);
}

std::string ProcessWorld::outcome(GlobalRank rank) {
  const Child& child = children_.at(static_cast<std::size_t>(rank.value));
  std::string text;
  char bytes[512];
  while (is_readable(child.output)) {
    const auto got = ::read(child.output.get(), bytes, sizeof bytes);
    if (got <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return "silent for " + std::to_string(kPatienceMilliseconds) + " ms";
}

}  // namespace lrun::comm
