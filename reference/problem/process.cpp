#include "attest/problem/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include "attest/problem/error.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// In the child: only what a signal handler may call.
[[noreturn]] void become(char* const* argv, char* const* environment, int out, bool with_stderr, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before that was set
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(with_stderr ? out : nothing, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  ::execvpe(argv[0], argv, environment);
  ::_exit(127);
}

// A child that is ended, with all that it started, and reaped, however the reading ends.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  bool has_ended() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }
  /// Its status, as waitpid() gives it.
  int end() {
    if (pid_ < 0) return 0;
    ::kill(-pid_, SIGKILL);  // of no effect on what has ended
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

// What comes through `pipe` until the process has ended and nothing more is in it, or it is to be killed.
void watch(const Child& child, int pipe, const ProcessOptions& options, Ended& ended) {
  const auto start = Clock::now();
  constexpr int look_every_ms = 50;
  constexpr std::size_t most_kept = std::size_t{1} << 26;
  for (bool closed = false;;) {
    pollfd ready{closed ? -1 : pipe, POLLIN, 0};  // of -1 poll() hears nothing
    if (::poll(&ready, 1, look_every_ms) > 0) {
      char bytes[1 << 14];
      const ssize_t got = ::read(pipe, bytes, sizeof bytes);
      closed = got == 0;
      const std::string_view text(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
      if (closed) continue;
      if (options.on_output)
        options.on_output(text);
      else if (ended.out.size() < most_kept)
        ended.out.append(text);
    } else if (child.has_ended()) {
      return;
    }
    ended.out_of_time = std::chrono::duration<double>(Clock::now() - start).count() >= options.seconds;
    ended.interrupted = options.stop && options.stop();
    if (ended.out_of_time || ended.interrupted) return;
  }
}

}  // namespace

std::string Ended::how() const {
  if (out_of_time) return "out of time";
  if (interrupted) return "interrupted";
  if (signal == 0) return fmt::format("exit status {}", exit_status);
  const char* const name = ::sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Ended run_process(const std::vector<std::string>& words, const ProcessOptions& options) {
  std::vector<std::string> arguments = words, variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : options.environment) {
    std::erase_if(variables, [set = name + "="](const std::string& v) { return v.starts_with(set); });
    variables.push_back(fmt::format("{}={}", name, value));
  }
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(fmt::format("no pipe: {}", std::strerror(errno)));
  const std::unique_ptr<const int, void (*)(const int*)> reading(&ends[0], [](const int* end) { ::close(*end); });
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) become(argv.data(), envp.data(), ends[1], options.with_stderr, parent);
  ::close(ends[1]);
  if (pid < 0) throw EnvironmentError(fmt::format("no process for {}: {}", words.at(0), std::strerror(errno)));
  ::setpgid(pid, pid);
  Child child(pid);
  Ended ended;
  watch(child, ends[0], options, ended);
  const int status = child.end();
  if (WIFEXITED(status)) ended.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

Ended run_lines(const std::vector<std::string>& words, const std::function<void(std::string_view)>& on_line) {
  std::string begun;  // a line whose end has not come yet
  ProcessOptions options;
  options.with_stderr = false;
  options.on_output = [&](std::string_view text) {
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      on_line(begun.append(text.substr(0, end)));
      begun.clear();
    }
    begun.append(text);
  };
  Ended ended = run_process(words, options);
  if (!begun.empty()) on_line(begun);
  return ended;
}

}  // namespace attest
