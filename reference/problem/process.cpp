#include "attest/problem/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "attest/problem/lines.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

void take_output(std::string_view text, const ProcessOptions& options, Ended& ended) {
  constexpr std::size_t most_kept = std::size_t{1} << 26;
  if (options.on_output)
    options.on_output(text);
  else if (ended.out.size() < most_kept)
    ended.out.append(text);
}

void take_error(std::string_view text, Ended& ended) {
  constexpr std::size_t most_kept = 1 << 12;
  ended.err.append(text);
  if (ended.err.size() > most_kept) ended.err.erase(0, ended.err.size() - most_kept);
}

// What comes through the pipes until the process has ended and nothing more is in them, or it is to be killed.
void watch(const Child& child, int out, int err, const ProcessOptions& options, Ended& ended) {
  const auto start = Clock::now();
  constexpr int look_every_ms = 50;
  pollfd pipes[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  for (;;) {
    if (::poll(pipes, std::size(pipes), look_every_ms) > 0) {
      for (pollfd& pipe : pipes) {
        if (pipe.revents == 0) continue;
        char bytes[1 << 14];
        const ssize_t got = ::read(pipe.fd, bytes, sizeof bytes);
        const std::string_view text(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
        &pipe == pipes ? take_output(text, options, ended) : take_error(text, ended);
        if (got == 0) pipe.fd = -1;  // of which poll() hears nothing
      }
    } else if (child.has_ended()) {
      return;
    }
    ended.out_of_time = std::chrono::duration<double>(Clock::now() - start).count() >= options.seconds;
    ended.interrupted = options.stop && options.stop();
    if (ended.out_of_time || ended.interrupted) return;
  }
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(fmt::format("no pipe: {}", std::strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

std::string Ended::how() const {
  if (out_of_time) return "out of time";
  return interrupted ? "interrupted" : ChildEnd::how();
}

Ended run_process(const std::vector<std::string>& words, const ProcessOptions& options) {
  auto [out, to_out] = make_pipe();
  auto [err, to_err] = make_pipe();
  ChildOptions start;
  start.descriptors = {{to_out.get(), STDOUT_FILENO},
                       {options.with_stderr ? to_out.get() : to_err.get(), STDERR_FILENO}};
  start.environment = options.environment;
  Ended ended;
  try {
    Child child(words.at(0), words, start);
    to_out.close();
    to_err.close();
    watch(child, out.get(), err.get(), options, ended);
    static_cast<ChildEnd&>(ended) = child.end();
  } catch (const NotExecuted&) {
    ended.exit_status = 127;  // as in a shell
  }
  return ended;
}

Ended run_lines(const std::vector<std::string>& words, const std::function<void(std::string_view)>& on_line,
                double silent_seconds) {
  Lines lines(on_line);
  Clock::time_point heard = Clock::now();
  ProcessOptions options;
  options.with_stderr = false;
  options.stop = [&] { return std::chrono::duration<double>(Clock::now() - heard).count() > silent_seconds; };
  options.on_output = [&](std::string_view text) {
    heard = Clock::now();
    lines.add(text);
  };
  Ended ended = run_process(words, options);
  ended.out_of_time = std::exchange(ended.interrupted, false);
  lines.end();
  return ended;
}

}  // namespace attest
