#include "attest/fuzz/in_flight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

// The line is plain characters in place: a signal handler may neither allocate nor lock. The mutex is between the
// thread and whoever looks for hangs; the handler reads its own thread's line, which that thread is not writing then.
struct Slot {
  std::mutex mutex;
  bool busy = false;
  Clock::time_point since;
  char line[1024] = {};
  std::string kernel = "cpu";

  Slot();
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
};

std::mutex slots_mutex;
std::vector<Slot*>& slots() {
  static std::vector<Slot*> all;
  return all;
}

Slot::Slot() {
  const std::lock_guard lock(slots_mutex);
  slots().push_back(this);
}
Slot::~Slot() {
  const std::lock_guard lock(slots_mutex);
  std::erase(slots(), this);
}

Slot& slot() {
  thread_local Slot own;
  return own;
}

// What the handler reads; a plain pointer, because the handler must not run the constructor above.
thread_local const char* line_in_flight = nullptr;

void write_all(const char* text) {
  std::size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, left);
    if (written <= 0) return;
    text += written;
    left -= static_cast<std::size_t>(written);
  }
}

extern "C" void report_crash(int signal) {
  if (const char* line = line_in_flight) {
    write_all("\nattest: the kernel crashed (");
    write_all(signal == SIGSEGV  ? "SIGSEGV"
              : signal == SIGBUS ? "SIGBUS"
              : signal == SIGILL ? "SIGILL"
              : signal == SIGFPE ? "SIGFPE"
                                 : "SIGABRT");
    write_all("); this repeats it:\n  ");
    write_all(line);
    write_all("\n");
    ::_exit(4);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

std::string repro_line(std::string_view kernel, std::string_view property, const Case& c) {
  return fmt::format("attest check --kernel {} --property {} {}", kernel, property, command_line(c));
}

void set_in_flight_kernel(std::string_view kernel) { slot().kernel = kernel; }

void name_in_flight(std::string_view property, const Case& c) {
  Slot& own = slot();
  const std::string line = repro_line(own.kernel, property, c);
  const std::lock_guard lock(own.mutex);
  const std::size_t length = std::min(line.size(), sizeof own.line - 1);
  std::memcpy(own.line, line.data(), length);
  own.line[length] = '\0';
}

InFlight::InFlight() {
  Slot& own = slot();
  const std::lock_guard lock(own.mutex);
  own.since = Clock::now();
  own.busy = true;
  std::atomic_signal_fence(std::memory_order_release);
  line_in_flight = own.line;
}

InFlight::~InFlight() {
  line_in_flight = nullptr;
  Slot& own = slot();
  const std::lock_guard lock(own.mutex);
  own.busy = false;
}

void install_crash_handlers() {
  // A stack overflow leaves no stack to handle it on. The alternate stack serves the thread that installs; the others
  // lose only that case.
  static char stack[64 << 10];
  const stack_t alternate{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = report_crash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

std::optional<std::string> in_flight_longer_than(double seconds) {
  const auto limit = std::chrono::duration<double>(seconds);
  const std::lock_guard lock(slots_mutex);
  for (Slot* other : slots()) {
    const std::lock_guard own(other->mutex);
    if (other->busy && Clock::now() - other->since > limit) return std::string(other->line);
  }
  return std::nullopt;
}

}  // namespace attest
