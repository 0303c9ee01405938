// Files that a user names.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace attest {

/// All bytes of a regular file of at most `limit_bytes`. Throws InvalidInput naming `field`, the path and the reason.
std::string read_file(std::string_view field, const std::filesystem::path& path, std::size_t limit_bytes);

/// Makes the file hold `bytes`: written beside its place and renamed, so that a reader, a second writer or a crash sees
/// the old contents or the new ones. Throws EnvironmentError.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// What write_file() needs of the folder of `path`, tried. Throws EnvironmentError.
void expect_writable(const std::filesystem::path& path);

}  // namespace attest
