#include "python_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "attest/gpu/kernel_adapter.h"
#include "attest/problem/error.h"

namespace attest {
namespace {

// The descriptors that the child finds its own at.
constexpr int socket_descriptor = 3, memory_descriptor = 4;

struct Request {
  std::int32_t call, reserved;
};
struct Reply {
  std::int32_t status, reserved;
  std::int64_t base;  // where the child has the shared memory
};

[[noreturn]] void cannot(std::string_view what) {
  throw EnvironmentError(fmt::format("python: {}: {}", what, std::strerror(errno)));
}

// Above those that the child is given, so that none of these is closed by giving it another.
int move_up(int descriptor) {
  constexpr int low = 10;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, low);
  ::close(descriptor);
  return moved;
}

std::string attest_py() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto path = program.parent_path().parent_path() / "share" / "attest" / "attest.py";
  if (!std::filesystem::exists(path))
    throw EnvironmentError(fmt::format("python: '{}' is not there; it is installed beside attest", path.string()));
  return path.string();
}

pid_t spawn(std::vector<std::string> words, int socket, int memory) {
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);  // stdout is for results
  ::posix_spawn_file_actions_adddup2(&files, socket, socket_descriptor);
  ::posix_spawn_file_actions_adddup2(&files, memory, memory_descriptor);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  errno = error;
  if (error != 0) cannot(fmt::format("'{}' cannot be executed; $ATTEST_PYTHON names another", words[0]));
  return pid;
}

bool send_all(int socket, const void* bytes, std::size_t count) {
  return ::send(socket, bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
}

bool receive_all(int socket, void* bytes, std::size_t count) {
  for (std::size_t got = 0; got < count;) {
    const ssize_t more = ::recv(socket, static_cast<char*>(bytes) + got, count - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

PythonProcess::PythonProcess(const std::string& file, const std::string& function) {
  const char* const chosen = std::getenv("ATTEST_PYTHON");
  const std::string script = attest_py();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) cannot("no socket");
  socket_ = move_up(ends[0]);
  const int theirs = move_up(ends[1]), shared = move_up(::memfd_create("attest-python", MFD_CLOEXEC));
  if (shared < 0 || ::ftruncate(shared, static_cast<off_t>(shared_bytes)) != 0) cannot("no shared memory");
  void* const mapped = ::mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shared, 0);
  if (mapped == MAP_FAILED) cannot("no shared memory");
  memory_ = static_cast<std::byte*>(mapped);
  control().struct_size = sizeof(Control);
  pid_ = spawn({chosen != nullptr && *chosen != '\0' ? chosen : "python3", script, file, function}, theirs, shared);
  ::close(theirs);
  ::close(shared);
}

PythonProcess::~PythonProcess() {
  end();
  ::close(socket_);
  ::munmap(memory_, shared_bytes);
}

std::int32_t PythonProcess::call(PythonCall what) {
  control().message[0] = '\0';
  const Request request{static_cast<std::int32_t>(what), 0};
  Reply reply{};
  if (pid_ < 0 || !send_all(socket_, &request, sizeof request) || !receive_all(socket_, &reply, sizeof reply))
    throw plugin::Lost(fmt::format("python {}", end()));
  child_base_ = static_cast<std::uintptr_t>(reply.base);
  control().message[sizeof(Control::message) - 1] = '\0';
  return reply.status;
}

std::string PythonProcess::end() {
  if (pid_ < 0) return "has ended before";
  ::shutdown(socket_, SHUT_RDWR);
  int status = 0;
  // Whoever closed its end is about to end by itself; how it does so is what the user wants to know.
  for (int i = 0; i < 100; ++i) {
    if (::waitpid(pid_, &status, WNOHANG) != pid_) {
      ::usleep(10'000);
      continue;
    }
    pid_ = -1;
    if (WIFEXITED(status)) return fmt::format("ended with exit status {}", WEXITSTATUS(status));
    const char* const name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("ended by SIG{}", name ? name : "?");
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return "was ended by attest";
}

}  // namespace attest
