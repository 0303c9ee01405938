// What each thread is running right now, so that a crash or a hang still leaves the line that repeats it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "attest/problem/case.h"

namespace attest {

/// "attest check --kernel K --property P <the case's flags>".
std::string repro_line(std::string_view kernel, std::string_view property, const Case& c);

/// Names the kernel of this thread's repro lines; a thread that never did has "cpu".
void set_in_flight_kernel(std::string_view kernel);

/// What this thread is about to judge: the line that a crash or a hang of its kernel is told by.
void name_in_flight(std::string_view property, const Case& c);

/// Between construction and destruction this thread is inside the kernel under test, and nowhere else: a crash or a
/// hang of the oracle is not the kernel's. One at a time a thread.
class InFlight {
 public:
  InFlight();
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

/// From here on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT print the repro line of the thread they strike to stderr
/// and end the process with exit status 4. Without a case in flight they do what they did before.
void install_crash_handlers();

/// The repro line of some thread that has been in flight for longer than this; none if there is none. Thread safe.
std::optional<std::string> in_flight_longer_than(double seconds);

}  // namespace attest
