#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "attest/problem/error.h"
#include "parse.h"

namespace attest::tools {
namespace {

// Ends and reaps the child however the reading ends.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
};

}  // namespace

int run_lines(const std::vector<std::string>& argv, const std::function<void(std::string_view)>& on_line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(fmt::format("a pipe: {}", std::strerror(errno)));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(::fdopen(ends[0], "r"), &std::fclose);
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) throw EnvironmentError(fmt::format("{}: {}", in_quotes(argv.front()), std::strerror(error)));
  Child child(pid);
  char* line = nullptr;
  std::size_t size = 0;
  const std::unique_ptr<char*, void (*)(char**)> freed(&line, [](char** text) { std::free(*text); });
  for (ssize_t length = 0; (length = ::getline(&line, &size, output.get())) >= 0;) {
    std::string_view text(line, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.remove_suffix(1);
    on_line(text);
  }
  return child.wait();
}

}  // namespace attest::tools
