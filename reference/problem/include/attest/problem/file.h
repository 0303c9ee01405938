// Files that a user names.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace attest {

/// All bytes of a regular file of at most `limit_bytes`. Throws InvalidInput naming `field`, the path and the reason,
/// and EnvironmentError where reading breaks off.
std::string read_file(std::string_view field, const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace attest
