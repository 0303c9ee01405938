// Work that a kernel may end: crash, or leave by exit().
#pragma once
#include <functional>
#include <string>

#include "attest/problem/exit_code.h"

namespace attest::tools {

/// Does `work`, in which `kernel` is loaded and called, in a child of this process, and returns its exit status; the
/// child goes when this process does. Throws KernelCrashed where the child ended before `work` had, EnvironmentError
/// where there is no process to be had.
ExitCode apart(const std::string& kernel, const std::function<ExitCode()>& work);

}  // namespace attest::tools
