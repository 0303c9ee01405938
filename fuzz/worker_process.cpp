#include "worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <vector>

#include "attest/problem/error.h"

namespace attest {
namespace {

// Descriptors of this process that close themselves. Above those that a worker finds its own at, so that moving one
// there overwrites none of the others.
class Descriptor {
 public:
  explicit Descriptor(int opened) : number_(opened) {
    constexpr int low = 10;
    if (opened < 0 || opened >= low) return;
    number_ = ::fcntl(opened, F_DUPFD_CLOEXEC, low);
    ::close(opened);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void cannot(std::string_view what, int error) {
  throw EnvironmentError(fmt::format("a worker: {}: {}", what, std::strerror(error)));
}

struct Actions {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  Actions() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

pid_t spawn(const WorkerProgram& program, int socket, int memory) {
  Actions actions;
  ::posix_spawn_file_actions_addopen(&actions.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions.files, socket, wire::socket_descriptor);
  ::posix_spawn_file_actions_adddup2(&actions.files, memory, wire::record_descriptor);
  // A process group of its own: the terminal's Ctrl-C is the parent's to decide on, and what the kernel starts dies
  // with the worker. Until the worker ignores what else may come, it is blocked.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&blocked, signal);
  ::posix_spawnattr_setsigmask(&actions.attributes, &blocked);
  ::posix_spawnattr_setpgroup(&actions.attributes, 0);
  ::posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);

  std::vector<std::string> words = program.arguments;
  words.insert(words.begin(), "attest");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, program.path.c_str(), &actions.files, &actions.attributes, argv.data(), environ);
  if (error != 0) cannot(fmt::format("'{}' cannot be executed", program.path), error);
  return pid;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerProgram& program) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) cannot("no socket", errno);
  Descriptor ours(ends[0]), theirs(ends[1]);
  const Descriptor memory(::memfd_create("attest-worker", MFD_CLOEXEC));
  if (memory.get() < 0 || ::ftruncate(memory.get(), sizeof(FlightRecord)) != 0) cannot("no shared memory", errno);
  void* const shared = ::mmap(nullptr, sizeof(FlightRecord), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (shared == MAP_FAILED) cannot("no shared memory", errno);
  record_ = new (shared) FlightRecord;
  try {
    pid_ = spawn(program, theirs.get(), memory.get());
  } catch (...) {
    ::munmap(record_, sizeof(FlightRecord));
    throw;
  }
  socket_ = ours.release();
}

WorkerProcess::~WorkerProcess() {
  end();
  ::close(socket_);
  ::munmap(record_, sizeof(FlightRecord));
}

WorkerProcess::Event WorkerProcess::receive(wire::Json& message, double seconds) {
  const std::int64_t deadline = monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
  for (bool last = false;;) {
    try {
      if (std::optional<wire::Json> next = unframer_.next()) {
        message = std::move(*next);
        return Event::message;
      }
    } catch (const std::exception&) {  // the kernel wrote to a descriptor that is not its own
      garbled_ = true;
      return Event::gone;
    }
    if (last) return Event::gone;
    const std::int64_t left_ns = std::max<std::int64_t>(0, deadline - monotonic_ns());
    // A child of the worker may hold the socket open beyond its end: so the process itself is looked at as well.
    constexpr std::int64_t look_every_ms = 100;
    pollfd ready{socket_, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::min(look_every_ms, (left_ns + 999'999) / 1'000'000)));
    if (count > 0) {
      last = !read_more();
    } else if (exited()) {
      while (::poll(&ready, 1, 0) > 0 && read_more()) {
      }
      last = true;
    } else if (left_ns == 0) {
      return Event::timeout;
    }
  }
}

bool WorkerProcess::read_more() {
  char bytes[1 << 16];
  const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
  if (got < 0 && errno == EINTR) return true;
  closed_ = got <= 0;
  if (closed_) return false;
  unframer_.add({bytes, static_cast<std::size_t>(got)});
  return true;
}

// Without reaping it: until then its number, which is its group's too, is nobody else's.
bool WorkerProcess::exited() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

std::string WorkerProcess::end() {
  if (pid_ < 0) return ending_;
  // A worker whose socket closed is about to end by itself; how it does so is what the user wants to know.
  for (int i = 0; i < 100 && closed_ && !exited(); ++i) ::poll(nullptr, 0, 10);
  const bool by_itself = exited();
  ::kill(-pid_, SIGKILL);  // with all that it started
  // A process that a driver holds may outlive SIGKILL for long; then it is left to whoever inherits it.
  for (int i = 0; i < 1000 && !exited(); ++i) ::poll(nullptr, 0, 10);
  int status = 0;
  const bool reaped = ::waitpid(pid_, &status, WNOHANG) == pid_;
  pid_ = -1;
  if (garbled_) {
    ending_ = "garbage written to the worker's socket";
  } else if (!by_itself || !reaped) {
    ending_ = "killed by attest";
  } else if (WIFEXITED(status)) {
    ending_ = fmt::format("exit status {}", WEXITSTATUS(status));
  } else {
    const int signal = WTERMSIG(status);
    const char* const name = ::sigabbrev_np(signal);
    ending_ = fmt::format("{}{}", name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal),
                          signal == SIGKILL ? ", as where memory runs out" : "");
  }
  return ending_;
}

}  // namespace attest
