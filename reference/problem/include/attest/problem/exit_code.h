// What the program's exit status says; scripts depend on it.
#pragma once

namespace attest {

enum ExitCode : int {
  exit_pass = 0,
  exit_kernel_wrong = 1,
  exit_usage = 2,           // something the user can correct: a flag, a case, a file's contents
  exit_environment = 3,     // something outside attest is missing or refuses; also a bug in attest, named as such
  exit_kernel_crashed = 4,  // or hung
  exit_regression = 5,      // slower, or more bytes, than before
  exit_unsupported = 77,
  exit_interrupted = 130,  // after saving what was done
};

}  // namespace attest
