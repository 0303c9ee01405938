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

/// Reads the command line, runs the command it names and returns the exit status. Whatever is thrown becomes one line
/// on stderr: InvalidInput exits with 2, EnvironmentError with 3, anything else with 3 and a request to report it.
int run_program(std::span<const Command> commands, int argc, const char* const* argv);

}  // namespace attest::tools
