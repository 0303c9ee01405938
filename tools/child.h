// Another program's output, line by line.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attest::tools {

/// Runs `argv` without a shell, stdin empty, stderr thrown away, and gives on_line what it prints, without line ends.
/// Returns its exit status, 128 + N where signal N ended it. Throws EnvironmentError if it cannot be started. What
/// on_line throws ends the program too.
int run_lines(const std::vector<std::string>& argv, const std::function<void(std::string_view)>& on_line);

}  // namespace attest::tools
