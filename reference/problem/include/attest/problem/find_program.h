// Programs that attest does not bring along.
#pragma once
#include <string>
#include <vector>

namespace attest {

/// `name` itself if it has a slash and can be run; else the first that can be run in $PATH, then in `folders`. Empty if
/// none can.
std::string find_program(const std::string& name, const std::vector<std::string>& folders = {});

}  // namespace attest
