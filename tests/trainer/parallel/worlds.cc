#include "tests/trainer/parallel/worlds.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/fd.h"
#include "trainer/parallel/determinism.h"

namespace lrun::parallel {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds kDeadline{60};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "lrun-world-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A file for each value; works between threads and between processes.
class FolderBootstrap final : public comm::Bootstrap {
 public:
  explicit FolderBootstrap(fs::path folder) : folder_(std::move(folder)) {}

  void publish(const std::string& key, const std::string& value) override {
    const fs::path partial = folder_ / (file_name(key) + ".partial");
    std::ofstream(partial, std::ios::binary) << value;
    fs::rename(partial, folder_ / file_name(key));
  }

  std::string lookup(const std::string& key, std::chrono::milliseconds deadline) override {
    const auto end = std::chrono::steady_clock::now() + deadline;
    const Fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(changes.get(), folder_.c_str(), IN_MOVED_TO);
    while (!fs::exists(folder_ / file_name(key))) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) throw comm::DeadlineExceeded("no " + key);
      wait_for_change(changes.get(), left);
    }
    std::ifstream file(folder_ / file_name(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  static void wait_for_change(int changes, std::chrono::milliseconds left) {
    pollfd waited{.fd = changes, .events = POLLIN, .revents = 0};
    ::poll(&waited, 1, static_cast<int>(left.count()));
    char events[4096];
    while (::read(changes, events, sizeof events) > 0) continue;
  }
  static std::string file_name(std::string key) {
    for (char& letter : key) {
      if (letter == '/') letter = '~';
    }
    return key;
  }
  fs::path folder_;
};

std::unique_ptr<comm::Comm> connect(int rank, int world_size, const fs::path& folder) {
  FolderBootstrap bootstrap(folder);
  comm::Comm::Options options;
  options.rank = GlobalRank{rank};
  options.world_size = world_size;
  options.generation = {1, 1};
  options.host = "127.0.0.1";
  options.node = "test";
  options.connect_deadline = kDeadline;
  options.deadline = kDeadline;
  return comm::Comm::connect(options, &bootstrap);
}

void write_all(int descriptor, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const auto count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto count = ::read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

[[noreturn]] void child_main(int descriptor, const std::function<std::string()>& body) {
  ::alarm(static_cast<unsigned>(kDeadline.count()));  // no orphan outlives a broken test
  int status = 1;
  std::string text;
  try {
    text = body();
    status = 0;
  } catch (const std::exception& error) {
    text = error.what();
  }
  write_all(descriptor, text);
  ::_exit(status);
}

struct Child {
  pid_t pid = -1;
  int output = -1;
};

Child start(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    child_main(ends[1], body);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

// Its text; appends a sentence to `failures` when it failed.
std::string collect(const Child& child, int rank, std::string& failures) {
  std::string text = read_all(child.output);
  ::close(child.output);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (status != 0) failures += "rank " + std::to_string(rank) + ": " + text + "\n";
  return text;
}

}  // namespace

void run_world(int world_size, const std::function<void(comm::Comm&)>& body) {
  const TemporaryFolder folder;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        pin_arithmetic();
        const auto comm = connect(rank, world_size, folder.path());
        body(*comm);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<std::string> run_processes(int world_size,
                                       const std::function<std::string(comm::Comm&)>& body) {
  const TemporaryFolder folder;
  std::vector<Child> children;
  for (int rank = 0; rank < world_size; ++rank) {
    children.push_back(start([&, rank] {
      pin_arithmetic();
      const auto comm = connect(rank, world_size, folder.path());
      return body(*comm);
    }));
  }
  std::vector<std::string> texts;
  std::string failures;
  for (int rank = 0; rank < world_size; ++rank) {
    texts.push_back(collect(children[static_cast<std::size_t>(rank)], rank, failures));
  }
  if (!failures.empty()) throw std::runtime_error(failures);
  return texts;
}

}  // namespace lrun::parallel
