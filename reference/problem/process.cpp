#include "attest/problem/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

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
  return interrupted ? "interrupted" : ChildEnd::how();
}

Ended run_process(const std::vector<std::string>& words, const ProcessOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(fmt::format("no pipe: {}", std::strerror(errno)));
  const Descriptor reading(ends[0]), nothing = open_nothing();
  Descriptor writing(ends[1]);
  ChildOptions start;
  start.descriptors = {{writing.get(), STDOUT_FILENO},
                       {options.with_stderr ? writing.get() : nothing.get(), STDERR_FILENO}};
  start.environment = options.environment;
  Ended ended;
  try {
    Child child(words.at(0), words, start);
    writing.close();
    watch(child, reading.get(), options, ended);
    static_cast<ChildEnd&>(ended) = child.end();
  } catch (const NotExecuted&) {
    ended.exit_status = 127;  // as in a shell
  }
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
