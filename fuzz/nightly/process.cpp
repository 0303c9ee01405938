#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "attest/fuzz/interrupt.h"
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
[[noreturn]] void become(char* const* argv, char* const* environment, int out, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before that was set
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  ::execvpe(argv[0], argv, environment);
  ::_exit(127);
}

// What comes through `pipe` until the process has ended and nobody holds the pipe, or it is killed.
void watch(pid_t child, int pipe, double seconds, Ended& ended) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  constexpr int look_every_ms = 50;
  constexpr std::size_t most_kept = std::size_t{1} << 26;
  for (bool over = false; !over;) {
    pollfd ready{pipe, POLLIN, 0};
    if (::poll(&ready, 1, look_every_ms) > 0) {
      char bytes[1 << 14];
      const ssize_t got = ::read(pipe, bytes, sizeof bytes);
      if (got > 0 && ended.out.size() < most_kept) ended.out.append(bytes, static_cast<std::size_t>(got));
      over = got == 0;
    } else {
      siginfo_t info{};
      over = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
    }
    if (over) return;
    ended.out_of_time = Clock::now() >= deadline;
    ended.interrupted = stop_requested();
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

Ended run_process(const std::vector<std::string>& words, double seconds,
                  const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> arguments = words, variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : environment) {
    std::erase_if(variables, [set = name + "="](const std::string& v) { return v.starts_with(set); });
    variables.push_back(fmt::format("{}={}", name, value));
  }
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(fmt::format("no pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(argv.data(), envp.data(), ends[1], parent);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw EnvironmentError(fmt::format("no process for {}: {}", words.at(0), std::strerror(errno)));
  }
  ::setpgid(child, child);
  Ended ended;
  watch(child, ends[0], seconds, ended);
  ::kill(-child, SIGKILL);  // with all that it started; of no effect on what has ended
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  if (WIFEXITED(status)) ended.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

Ended run_attest_itself(std::vector<std::string> arguments, double seconds) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  return run_process(arguments, seconds);
}

std::string last_words(const std::string& out, std::size_t most) {
  std::string text = out.size() > most ? out.substr(out.find('\n', out.size() - most) + 1) : out;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace attest
