// Another program, with a limit on its time.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace attest {

struct Ended {
  int exit_status = -1;  // -1 where a signal ended it
  int signal = 0;
  bool out_of_time = false;  // it was killed for that
  bool interrupted = false;  // likewise after request_stop()
  std::string out;           // stdout and stderr together

  bool good() const { return exit_status == 0; }
  /// "exit status 2", "SIGSEGV", "out of time".
  std::string how() const;
};

/// Runs `words` as `execvp` does, with `environment` added, nothing on stdin and in a process group of its own, which
/// is killed after `seconds`, on request_stop() and when this process ends. Throws EnvironmentError where there is no
/// process to be had; a program that is not there ends with status 127, as in a shell.
Ended run_process(const std::vector<std::string>& words, double seconds,
                  const std::vector<std::pair<std::string, std::string>>& environment = {});

/// This program with other arguments.
Ended run_attest_itself(std::vector<std::string> arguments, double seconds);

/// The last `most` bytes of it that are whole lines, in one line: for a note.
std::string last_words(const std::string& out, std::size_t most = 300);

}  // namespace attest
