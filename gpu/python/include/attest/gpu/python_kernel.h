// A kernel that is a function of a Python file, under test through attest.py.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "attest/gpu/kernel.h"

namespace attest {

/// Whether `spec` is "PATH.py" or "PATH.py:NAME", as --kernel names one.
bool is_python_kernel(std::string_view spec);
/// Its path.
std::string python_file(std::string_view spec);

/// Starts $ATTEST_PYTHON, or python3, on attest.py and the file, and makes a kernel of the function that the file
/// registers under NAME, or of its only one. Throws InvalidInput for a file that is not there or registers no such
/// function, and EnvironmentError for want of Python and for what stops the file's import.
std::unique_ptr<Kernel> make_python_kernel(std::string_view spec);

}  // namespace attest
