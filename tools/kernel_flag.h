// --kernel, of every command that runs one.
#pragma once
#include <string>

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

}  // namespace attest::tools
