// Another program, run to its end.
#pragma once
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attest/problem/child.h"

namespace attest {

struct ProcessOptions {
  double seconds = std::numeric_limits<double>::infinity();      // after which it is killed
  std::vector<std::pair<std::string, std::string>> environment;  // beside this process's, or in its place
  bool with_stderr = true;                                       // as a part of the output; else its end is Ended::err
  std::function<bool()> stop;                                    // asked all the time: true has it killed
  std::function<void(std::string_view)> on_output;               // takes the output as it comes, in place of Ended::out
};

struct Ended : ChildEnd {
  bool out_of_time = false;  // it was killed for that
  bool interrupted = false;  // likewise because it was to stop
  std::string out;           // the first 64 MiB
  std::string err;           // the last 4 KiB of stderr, where it is no part of the output

  bool good() const { return exit_status == 0; }
  /// "exit status 2", "SIGSEGV", "out of time".
  std::string how() const;
};

/// Runs `words` as `execvp` does, with nothing on stdin and in a process group of its own, which is killed when the
/// program has ended or is to end, and when on_output throws; kill_children() kills it too. If this process is killed
/// the program is too, but of what it started in turn only what looks after itself. Throws EnvironmentError where there
/// is no process to be had; a program that is not there ends with status 127, as in a shell.
Ended run_process(const std::vector<std::string>& words, const ProcessOptions& options = {});

/// What `words` prints, stderr apart, line by line and without line ends. Throws as Lines does, when the program is
/// killed. One that prints nothing for `silent_seconds` is killed, and ends out of time.
Ended run_lines(const std::vector<std::string>& words, const std::function<void(std::string_view)>& on_line,
                double silent_seconds = std::numeric_limits<double>::infinity());

}  // namespace attest
