// The program: a table of commands, and what every one of them shares.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "attest/problem/exit_code.h"
#include "flags.h"

namespace attest::tools {

struct Command {
  std::string name;
  std::string summary;   // one line of `attest --help`
  std::string examples;  // the end of `attest NAME --help`
  std::function<void(Flags&)> declare;
  std::function<ExitCode(const Flags&)> run;
};

/// Reads the command line, runs the command it names and returns the exit status, or what stands for what it throws,
/// told in a line on stderr: InvalidInput 2, EnvironmentError 3, KernelCrashed and KernelLost 4, anything else 3 with a
/// request to report it. 3, too, where stdout could not be written.
int run_program(std::span<const Command> commands, int argc, const char* const* argv);

}  // namespace attest::tools
