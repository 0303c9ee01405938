// Another program's output, line by line.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attest::tools {

/// The first of `names` that can be run: as it stands if it has a slash, else in $PATH, then in `folders`. Empty if
/// none can.
std::string find_program(const std::string& name, const std::vector<std::string>& folders = {});

/// Runs `argv` without a shell, stdin empty, stderr thrown away, and gives on_line what it prints, without line ends.
/// Returns its exit status, 128 + N where signal N ended it. Throws EnvironmentError if it cannot be started. What
/// on_line throws ends the program too.
int run_lines(const std::vector<std::string>& argv, const std::function<void(std::string_view)>& on_line);

}  // namespace attest::tools
