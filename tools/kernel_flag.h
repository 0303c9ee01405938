// --kernel, of every command that runs one.
#pragma once
#include <string>

#include "attest/fuzz/worker.h"
#include "flags.h"

namespace attest::tools {

void declare_kernel_flag(Flags& flags);

/// What --kernel says, "cpu" where it is not given. Throws InvalidInput for a name that no kernel has, with the
/// nearest, and for a path where no file is.
std::string read_kernel(const Flags& flags);
/// The same of a word.
std::string known_kernel(const std::string& word);
/// The user's file that a word of --kernel names; empty for attest's own kernels.
std::string kernel_file(const std::string& word);
/// The file that a word of audit's --kernel names, whatever is in it; empty for attest's own kernels.
std::string code_file(const std::string& word);

/// --timeout and --load-timeout, as the commands that run a kernel in a worker have it; a call's limit is
/// `call_seconds` if not given.
void declare_timeout_flag(Flags& flags, double call_seconds);
/// How a worker is started: loading a kernel there may take --load-timeout, or the greater of 60 s and --timeout.
WorkerProgram worker_program(const Flags& flags);

}  // namespace attest::tools
