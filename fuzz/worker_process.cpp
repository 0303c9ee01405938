#include "worker_process.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>

namespace attest {
namespace {

std::vector<std::string> words_of(const WorkerProgram& program) {
  std::vector<std::string> words = program.arguments;
  words.insert(words.begin(), "attest");
  return words;
}

// A process group of its own: the terminal's Ctrl-C is the parent's to decide on, and what the kernel starts dies with
// the worker.
ChildOptions given(const Descriptor& socket, SharedMemory& memory) {
  ChildOptions options;
  options.descriptors = {{socket.get(), wire::socket_descriptor}, {memory.descriptor().get(), wire::record_descriptor}};
  options.ignores_signals = true;
  return options;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerProgram& program) : WorkerProcess(program, make_socket_pair()) {}

WorkerProcess::WorkerProcess(const WorkerProgram& program, std::pair<Descriptor, Descriptor> ends)
    : memory_(sizeof(FlightRecord)),
      record_(new (memory_.data()) FlightRecord),
      socket_(std::move(ends.first)),
      child_(program.path, words_of(program), given(ends.second, memory_)) {
  memory_.descriptor().close();
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
    pollfd ready{socket_.get(), POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::min(look_every_ms, (left_ns + 999'999) / 1'000'000)));
    if (count > 0) {
      last = !read_more();
    } else if (child_.has_ended()) {
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
  const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (got < 0 && errno == EINTR) return true;
  closed_ = got <= 0;
  if (closed_) return false;
  unframer_.add({bytes, static_cast<std::size_t>(got)});
  return true;
}

std::string WorkerProcess::end() {
  // A worker whose socket closed is about to end by itself; how it does so is what the user wants to know.
  constexpr double grace_seconds = 1;
  const ChildEnd& ended = child_.end(closed_ ? grace_seconds : 0);
  if (garbled_) return "garbage written to the worker's socket";
  if (ended.killed) return "killed by attest";
  return ended.how() + (ended.signal == SIGKILL ? ", as where memory runs out" : "");
}

}  // namespace attest
